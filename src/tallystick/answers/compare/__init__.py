"""Why two models differ in size: causes that sum exactly to the difference."""
