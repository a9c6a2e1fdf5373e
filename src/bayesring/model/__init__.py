"""What is fitted: the algebra of the ring, its state, its size, and the joint distribution."""
