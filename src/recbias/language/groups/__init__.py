"""Words that name groups of people, and how probable each group is where one stands in a text."""
