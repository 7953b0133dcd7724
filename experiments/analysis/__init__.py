"""What results say: compared, judged, drawn."""
