"""A site's own app whose programs ask people: what each asks, by what the person says."""
