"""Inference: the Gibbs sampler, rank adaption, random streams, and the driver of chains."""
