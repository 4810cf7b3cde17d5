"""What the test suites share: servers to test against, a raw protocol client, hand-made batches, Java programs."""
