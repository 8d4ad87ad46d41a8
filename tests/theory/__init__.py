"""Statistical claims, with exact truths and tolerances in standard errors."""
