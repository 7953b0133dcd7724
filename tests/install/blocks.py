"""Print the Python block of a page that mentions a word: `python blocks.py README.md mdp`."""

import re
import sys
from pathlib import Path

page, word = sys.argv[1:]
blocks = re.findall(r"```python\n(.*?)```", Path(page).read_text(), re.DOTALL)
print(next(block for block in blocks if word in block))
