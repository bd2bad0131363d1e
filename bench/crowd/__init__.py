"""An app with as many tools and plugins as the environment says, for `bench.flat`."""
