"""What each coalition faces, in numbers and words."""
