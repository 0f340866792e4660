"""The web application: experiment folders and a history as pages, and as JSON at the same addresses."""
