"""Inference: the Gibbs sampler and its chains, online EM and its schedule."""
