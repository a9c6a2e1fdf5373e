"""Reports on fitted models: numbers first, then an HTML page or matplotlib pictures."""
