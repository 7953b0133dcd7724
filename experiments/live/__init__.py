"""Live xi: stored policies under any reward, tried out in a page without a server.

    training   a handful of policies of SFR and SF (object collection), and of CSFR and SF (racer)
    export     their weights and worlds as JSON, small enough for a page
    page       the page, and the fragment that another page can include

`python -m experiments.live --output live.html` does all of it.
"""
