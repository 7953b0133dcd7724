"""The paper's environments on Gymnasium, and adapters that make features of other environments visible."""
