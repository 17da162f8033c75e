"""From relations between words to the similarity of concepts: weighted hierarchy, ics, best base concept."""
