"""Having pods judged by Admission: in order, one at a time, and never forgotten on the way."""
