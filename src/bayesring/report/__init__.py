"""Pictures and pages, made from results and never from live models."""
