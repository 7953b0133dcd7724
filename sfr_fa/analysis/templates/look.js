/* Figures that answer, and tables that can be searched. Without this script everything still reads.
 *
 * A figure.plot holds an SVG, and in a script of type application/json what is where in it (sfr_fa/analysis/figures.py):
 *   series   [[name, colour], ...]; what belongs to series k has an id with -s{k}- in it
 *   panels   xlim, ylim of the box with an id that ends in -plot-{k}, and either
 *            at, series {k: {n, mean, error, low, high}}   numbers at places of the x axis, with their names if
 *                                                           they have any, or
 *            rows [[line, ...], ...]                        sentences about each series, one below the other
 */
"use strict";

const Look = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  function make(name, properties = {}, ...children) {
    const made = document.createElement(name);
    Object.assign(made, properties);
    made.append(...children);
    return made;
  }

  function shown(value) {
    if (value === null || value === undefined) return "-";
    return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
  }

  /** "812 ± 6 (n = 10, 780 to 850)" */
  function sentence(found, i, range) {
    const error = found.error && found.error[i] !== null ? ` ± ${shown(found.error[i])}` : "";
    const ends = found.low[i] === null ? "" : `, ${range} ${shown(found.low[i])} to ${shown(found.high[i])}`;
    return `${shown(found.mean[i])}${error} (n = ${found.n}${ends})`;
  }

  class Plot {
    constructor(figure) {
      this.figure = figure;
      this.svg = figure.querySelector("svg");
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.off = new Set();
      this.tip = make("div", { className: "tip", hidden: true });
      this.tip.setAttribute("role", "status");
      this.line = document.createElementNS(SVG, "path");
      this.line.setAttribute("class", "here");
      this.svg.append(this.line);
      if (!this.data.panels[0].rows) { // rows have their names beside them
        this.cutLegend();
        this.key();
      }
      figure.append(this.tip);
      this.at = { panel: 0, i: -1 };
      this.svg.tabIndex = 0;
      this.svg.addEventListener("pointermove", (event) => this.point(event));
      this.svg.addEventListener("pointerdown", (event) => this.point(event));
      this.svg.addEventListener("pointerleave", () => this.hide());
      this.svg.addEventListener("blur", () => this.hide());
      this.svg.addEventListener("keydown", (event) => this.step(event));
    }

    /** The drawn legend makes room for one with buttons. */
    cutLegend() {
      const legend = this.svg.querySelector('[id$="-legend"]');
      if (!legend) return;
      const box = this.svg.viewBox.baseVal, bottom = legend.getBBox().y + legend.getBBox().height;
      legend.style.display = "none";
      if (bottom < box.height / 2) this.svg.setAttribute("viewBox", `${box.x} ${bottom} ${box.width} ${box.height - bottom}`);
    }

    key() {
      const buttons = this.data.series.map(([name, colour], k) => {
        const sample = this.sample(k) ?? make("i");
        if (sample.tagName === "I") sample.style.background = `var(--${colour.slice(1).toLowerCase()}, ${colour})`;
        const button = make("button", { type: "button", title: "show or hide; double click: this one alone" }, sample, name);
        button.setAttribute("aria-pressed", "true");
        button.addEventListener("click", () => this.toggle(k));
        button.addEventListener("dblclick", () => this.only(k));
        return button;
      });
      this.buttons = buttons;
      this.figure.prepend(make("div", { className: "key" }, ...buttons));
    }

    /** A piece of a line as it is drawn, for agents of a family share a colour. */
    sample(k) {
      const line = this.svg.querySelector(`[id$="-s${k}-line-0"] path`);
      if (!line) return null;
      const [piece, path] = ["svg", "path"].map((name) => document.createElementNS(SVG, name));
      piece.setAttribute("viewBox", "0 0 26 8");
      path.setAttribute("d", "M0 4H26");
      path.setAttribute("style", line.getAttribute("style"));
      piece.append(path);
      return piece;
    }

    toggle(k) {
      if (!this.off.delete(k)) this.off.add(k);
      this.update();
    }

    only(k) {
      const alone = this.off.size === this.data.series.length - 1 && !this.off.has(k);
      this.off = new Set(alone ? [] : this.data.series.keys());
      this.off.delete(k);
      this.update();
    }

    update() {
      this.buttons.forEach((button, k) => {
        button.setAttribute("aria-pressed", String(!this.off.has(k)));
        for (const part of this.svg.querySelectorAll(`[id*="-s${k}-"]`)) part.style.display = this.off.has(k) ? "none" : "";
      });
      this.hide();
    }

    box(panel) {
      return this.svg.querySelector(`[id$="-plot-${panel}"]`).getBBox();
    }

    point(event) {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      for (const [panel, found] of this.data.panels.entries()) {
        const box = this.box(panel);
        if (at.x < box.x || at.x > box.x + box.width || at.y < box.y || at.y > box.y + box.height) continue;
        if (found.rows) {
          const [low, high] = found.ylim;
          const row = Math.round(high + ((at.y - box.y) / box.height) * (low - high));
          this.show(panel, Math.min(Math.max(row, 0), found.rows.length - 1));
        } else {
          const [low, high] = found.xlim;
          const x = low + ((at.x - box.x) / box.width) * (high - low);
          this.show(panel, found.at.reduce((best, place, i) => (Math.abs(place - x) < Math.abs(found.at[best] - x) ? i : best), 0));
        }
        return;
      }
      this.hide();
    }

    /** Left and right go along the axis, up and down from row to row or panel to panel. */
    step(event) {
      const move = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
      if (event.key === "Escape") this.hide();
      if (!move) return;
      event.preventDefault();
      const rows = this.data.panels[0].rows;
      const panel = rows ? 0 : Math.min(Math.max(this.at.panel + move[1], 0), this.data.panels.length - 1);
      const last = (rows || this.data.panels[panel].at).length - 1;
      this.show(panel, Math.min(Math.max(this.at.i + (rows ? move[0] + move[1] : move[0]), 0), last));
    }

    show(panel, i) {
      const found = this.data.panels[panel], box = this.box(panel);
      this.at = { panel, i };
      let lines, x, y;
      if (found.rows) {
        const [low, high] = found.ylim;
        y = box.y + ((i - high) / (low - high)) * box.height;
        x = box.x + box.width / 3;
        this.line.removeAttribute("d");
        const words = found.rows[i].map((text) => make("div", {}, text));
        lines = [make("b", {}, this.data.series[i][0]), ...words];
      } else {
        const [low, high] = found.xlim;
        x = box.x + ((found.at[i] - low) / (high - low)) * box.width;
        y = box.y + 6;
        this.line.setAttribute("d", `M${x} ${box.y}V${box.y + box.height}`);
        const entries = Object.entries(found.series).filter(([k, series]) => !this.off.has(Number(k)) && series.mean[i] !== null);
        entries.sort(([, a], [, b]) => b.mean[i] - a.mean[i]);
        const words = entries.map(([k, series]) => {
          const [name, colour] = this.data.series[k], dot = make("i");
          dot.style.background = `var(--${colour.slice(1).toLowerCase()}, ${colour})`;
          return make("div", {}, dot, `${name} ${sentence(series, i, this.data.range || "")}`.replace(",  ", ", "));
        });
        lines = [make("b", {}, found.names ? found.names[i] : `${this.data.x} ${shown(found.at[i])}`), ...words];
      }
      this.tip.replaceChildren(...lines);
      this.tip.hidden = false;
      const place = new DOMPoint(x, y).matrixTransform(this.svg.getScreenCTM());
      const frame = this.figure.getBoundingClientRect(), width = this.tip.offsetWidth;
      const left = place.x - frame.left, right = left + 14 + width > frame.width;
      this.tip.style.left = `${Math.max(0, right ? left - 14 - width : left + 14)}px`;
      this.tip.style.top = `${place.y - frame.top + (found.rows ? 14 : 0)}px`;
    }

    hide() {
      this.tip.hidden = true;
      this.line.removeAttribute("d");
    }
  }

  /** Rows of a table: searched, filtered by verdict and gravity, sorted. */
  class Ledger {
    constructor(place) {
      this.table = place.querySelector("table");
      this.bodies = [...this.table.tBodies];
      this.rows = this.bodies.flatMap((body) => [...body.rows].filter((row) => row.dataset.verdict).map((row) => ({ row, body })));
      this.search = make("input", { type: "search", placeholder: "words of a claim, an id, a label of the paper" });
      const values = (name) => [...new Set(this.rows.map(({ row }) => row.dataset[name]))].filter(Boolean);
      this.verdict = this.select(["all", ...values("verdict")]);
      this.gravity = this.select(["all", ...values("gravity"), "none"]);
      this.order = this.select(["as in the paper", "verdict", "gravity", "id"]);
      this.count = make("output");
      const named = { "Search": this.search, "Verdict": this.verdict, "Gravity of an error": this.gravity, "Order": this.order };
      const labels = Object.entries(named).map(([name, input]) => make("label", {}, name, input));
      place.prepend(make("div", { className: "tools" }, ...labels, this.count));
      for (const input of Object.values(named)) input.addEventListener("input", () => this.update());
      addEventListener("hashchange", () => this.reveal());
      this.update();
      this.reveal();
    }

    select(values) {
      return make("select", {}, ...values.map((value) => make("option", { value }, value)));
    }

    /** A link to a row shows it, whatever was searched for. */
    reveal() {
      const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (!row || !this.table.contains(row) || !row.hidden) return;
      this.search.value = "";
      this.verdict.value = this.gravity.value = "all";
      this.update();
      row.scrollIntoView();
    }

    update() {
      const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const verdict = this.verdict.value, gravity = this.gravity.value, order = this.order.value;
      let count = 0;
      for (const { row } of this.rows) {
        const text = row.textContent.toLowerCase();
        const fits = words.every((word) => text.includes(word))
          && (verdict === "all" || row.dataset.verdict === verdict)
          && (gravity === "all" || (row.dataset.gravity || "none") === gravity);
        row.hidden = !fits;
        count += fits;
      }
      const sorted = [...this.rows];
      if (order === "as in the paper") {
        for (const { row, body } of sorted) body.append(row);
      } else {
        const ranks = { verdict: [...this.verdict.options].map((o) => o.value), gravity: ["theorem", "assumption", "slip", "", undefined] };
        const by = ({ row }) => (order === "id" ? row.id : ranks[order].indexOf(row.dataset[order]));
        sorted.sort((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0));
        this.bodies[0].append(...sorted.map(({ row }) => row));
      }
      for (const body of this.bodies) {
        const heading = body.querySelector("tr.section");
        if (heading) heading.hidden = order !== "as in the paper" || ![...body.rows].some((row) => row.dataset.verdict && !row.hidden);
      }
      this.count.textContent = `${count} of ${this.rows.length} claims`;
    }
  }

  const plots = [...document.querySelectorAll("figure.plot")].filter((f) => f.querySelector("script")).map((f) => new Plot(f));
  const ledgers = [...document.querySelectorAll(".ledger")].filter((l) => l.querySelector("table")).map((place) => new Ledger(place));
  const folds = [...document.querySelectorAll("details[data-fold]")];
  for (const fold of folds) fold.open = false;
  addEventListener("beforeprint", () => folds.forEach((fold) => { fold.open = true; }));
  return { plots, ledgers };
})();
