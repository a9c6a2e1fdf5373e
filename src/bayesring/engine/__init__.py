"""Who works on blocks of observations: everything that runs kernels goes through an engine."""
