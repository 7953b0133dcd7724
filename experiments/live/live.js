/*
 * Live xi: stored policies under any reward, in the page, without a server.
 *
 * Given      K policies, trained beforehand. Policy k has for every state s and action a a vector
 *
 *                SFR   xi_k(s, a)   in R^D, the discounted number of times that each feature will be met
 *                SF    psi_k(s, a)  in R^n, the discounted sum of the features themselves
 *
 * Asked      a reward function R, from the sliders.
 * Computed   Q_k(s, a) = v . value_k(s, a), one dot product for each policy and action. The readout v is
 *
 *                rooms, SFR     v_j     = R(phi_j)                      the reward of each of the 6 features
 *                rooms, SF      v       = Phi^+ R                       least squares, the shortest weights
 *                racer, CSFR    v_{k,j} = r_k(x_j),  R = sum_k r_k      at 11 distances to each marker
 *                racer, SF      v       = F^+ R(F)                      least squares on a grid of positions F
 *
 *            Phi^+ and F^+, the pseudo-inverses, come with the data. In the rooms the least-squares fit is
 *            also one of the fits with the least sum of absolute errors, |R_2 - R_3 - R_4 + R_5|: it spreads
 *            the error evenly over the four kinds, where a linear programme would leave it on one of them.
 *
 *            GPI follows c = argmax_k max_a Q_k(s, a) and does argmax_a Q_c(s, a); ties go to the first.
 *
 * Values     rooms   value_k(s, a)_d = theta_{k,a,d} . s,  s = [g_i(x) g_j(y), memory, 1]
 *            racer   a network of two hidden ReLU layers for each marker, s = [g_i(x) g_j(y), h_l(angle)]
 *            g, h are Gaussian bumps; xi is read as max(0, xi), psi as it is.
 *
 * A value is affine in the memory of the rooms and does not depend on the reward, so fields over the map keep
 * value_k(s, a) of every cell: a new reward costs K A D multiplications per cell, a fraction of a millisecond
 * in all.
 *
 * Weights are 16-bit integers times a power of two, so they are exact in any arithmetic, and a Python agent
 * that holds the same numbers has the same values (tests/experiments/test_live.py). The order of the code:
 * mathematics (pure functions), worlds, simulation, pictures, the component.
 */
(() => {
"use strict";

// --- Arrays --------------------------------------------------------------------------------------------

/** Base64 of little-endian bytes -> ArrayBuffer. */
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;

/** Integers times a scale -> Float32Array. */
function decodeWeights({ scale, data }) {
  const view = new DataView(bytesOf(data));
  return Float32Array.from({ length: view.byteLength / 2 }, (_, i) => scale * view.getInt16(2 * i, true));
}

/** float64 numbers -> Float64Array. */
function decodeNumbers(data) {
  const view = new DataView(bytesOf(data));
  return Float64Array.from({ length: view.byteLength / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** matrix (rows, vector.length), row by row, times vector. */
function times(matrix, vector) {
  const n = vector.length;
  return Float64Array.from({ length: matrix.length / n }, (_, i) => {
    let sum = 0;
    for (let j = 0; j < n; j++) sum += matrix[i * n + j] * vector[j];
    return sum;
  });
}

// --- State codes: sfr_fa/kernels/encoding.py -----------------------------------------------------------

const intervalCode = (x, centres, sigma) => centres.map((c) => Math.exp(-((x - c) * (x - c)) / sigma));

const circleCode = (x, centres, period, sigma) => centres.map((c) => {
  const along = Math.abs(x - c), distance = Math.min(along, period - along);
  return Math.exp(-(distance * distance) / sigma);
});

/** Entry n i + j belongs to the centre (c_i, c_j). */
const outer = (codeX, codeY) => codeX.flatMap((gx) => codeY.map((gy) => gx * gy));

// --- Motion: sfr_fa/kernels/dynamics.py ----------------------------------------------------------------

const UP = 0, DOWN = 1, LEFT = 2;
const TURN_RIGHT = 0, TURN_LEFT = 2;

function blocked(x, y, walls) {
  if (!(0 <= x && x <= 1 && 0 <= y && y <= 1)) return true;
  return walls.some(([xLow, xHigh, yLow, yHigh]) => xLow <= x && x <= xHigh && yLow <= y && y <= yHigh);
}

/** One step in the rooms: the new place, the object picked up (or -1), and the index of the feature. */
function roomStep({ x, y, memory }, action, noise, g) {
  const length = g.stepLength + g.stepNoise * noise;
  let newX = x, newY = y;
  if (action === UP) newY = y + length;
  else if (action === DOWN) newY = y - length;
  else if (action === LEFT) newX = x - length;
  else newX = x + length;
  if (blocked(newX, newY, g.walls)) [newX, newY] = [x, y];
  const within = ([u, v], radius) => (newX - u) ** 2 + (newY - v) ** 2 <= radius * radius;
  if (within(g.goal, g.goalRadius)) return { x: newX, y: newY, picked: -1, feature: g.numKinds + 1 };
  const picked = g.objects.findIndex((place, j) => !memory[j] && within(place, g.objectRadius));
  return { x: newX, y: newY, picked, feature: picked < 0 ? 0 : 1 + g.kindOfObject[picked] };
}

/** value modulo period, in [low, low + period). */
function wrapped(value, low, period) {
  let offset = (value - low) % period;
  if (offset < 0) offset += period;
  return low + offset < low + period ? low + offset : low;
}

/** One step of the racer; noise has a standard normal for x, y and angle. */
function drive({ x, y, angle }, action, noise, g) {
  let length = g.turnLength;
  if (action === TURN_RIGHT) angle += g.turnAngle;
  else if (action === TURN_LEFT) angle -= g.turnAngle;
  else length = g.straightLength;
  return {
    x: wrapped(x + length * Math.cos(angle) + g.noise * noise[0], 0, 1),
    y: wrapped(y + length * Math.sin(angle) + g.noise * noise[1], 0, 1),
    angle: wrapped(angle + g.noise * noise[2], -Math.PI, 2 * Math.PI),
  };
}

/** Distances on the torus to each marker, as parts of the largest one. */
const markerDistances = (x, y, markers) => markers.map(([u, v]) => {
  const dx = Math.abs(x - u), dy = Math.abs(y - v);
  return Math.min(Math.hypot(Math.min(dx, 1 - dx), Math.min(dy, 1 - dy)) / Math.SQRT1_2, 1);
});

// --- Values of all policies at a state -----------------------------------------------------------------

/** value(s, a)_d = theta_{k,a,d} . s of K policies; theta (K, A, D, S). */
class LinearValues {
  constructor({ shape, floor, weights }) {
    [this.K, this.A, this.D, this.S] = shape;
    this.floor = floor ?? -Infinity;
    this.theta = decodeWeights(weights);
  }

  /** (K, A, D) at a state (S,). */
  at(state) {
    const { theta, S, floor } = this;
    const values = new Float64Array(this.K * this.A * this.D);
    for (let i = 0, w = 0; i < values.length; i++) {
      let sum = 0;
      for (let s = 0; s < S; s++, w++) sum += theta[w] * state[s];
      values[i] = Math.max(floor, sum);
    }
    return values;
  }
}

/** A network for each policy and group: inputs -> hidden -> hidden -> (A, U); values come as (K, A, G U). */
class NetworkValues {
  constructor({ shape, floor, layers }) {
    [this.K, this.A, this.G, this.U] = shape;
    this.D = this.G * this.U;
    this.floor = floor ?? -Infinity;
    this.layers = layers.map(({ inputs, outputs, weights, biases }) => (
      { inputs, outputs, weights: decodeWeights(weights), biases: decodeWeights(biases) }));
  }

  at(state) {
    return this.fromFirst(this.firstLayer(state, 0));
  }

  /** W_1 s for an input s that begins at column `from`, without the biases: (K G H). */
  firstLayer(part, from) {
    const { inputs, weights } = this.layers[0];
    const sums = new Float64Array(weights.length / inputs);
    for (let o = 0; o < sums.length; o++) {
      const row = o * inputs + from;
      let sum = 0;
      for (let i = 0; i < part.length; i++) sum += weights[row + i] * part[i];
      sums[o] = sum;
    }
    return sums;
  }

  /** The other layers, from the sums of the first (and of a second part of the input, if it is split). */
  fromFirst(sums, more = null) {
    const [first, second, third] = this.layers, { K, A, G, U, D, floor } = this;
    const H1 = first.outputs, H2 = second.outputs, H3 = third.outputs;
    const hidden1 = new Float64Array(H1), hidden2 = new Float64Array(H2);
    const values = new Float64Array(K * A * D);
    for (let n = 0; n < K * G; n++) {
      const k = Math.floor(n / G), g = n % G;
      for (let o = 0; o < H1; o++) {
        const i = n * H1 + o;
        hidden1[o] = Math.max(0, sums[i] + (more ? more[i] : 0) + first.biases[i]);
      }
      for (let o = 0; o < H2; o++) {
        const row = (n * H2 + o) * H1;
        let sum = second.biases[n * H2 + o];
        for (let i = 0; i < H1; i++) sum += second.weights[row + i] * hidden1[i];
        hidden2[o] = Math.max(0, sum);
      }
      for (let o = 0; o < H3; o++) {
        const row = (n * H3 + o) * H2;
        let sum = third.biases[n * H3 + o];
        for (let i = 0; i < H2; i++) sum += third.weights[row + i] * hidden2[i];
        const a = Math.floor(o / U);
        values[(k * A + a) * D + g * U + (o - a * U)] = Math.max(floor, sum);
      }
    }
    return values;
  }
}

/** Q (K, A) = v . value. */
const qOf = (values, readout) => times(values, readout);

/** The first of the largest: policy, action and value of Q (K, A). */
function gpi(q, A) {
  let best = 0;
  for (let i = 1; i < q.length; i++) if (q[i] > q[best]) best = i;
  return { policy: Math.floor(best / A), action: best % A, value: q[best] };
}

// --- Fields: the GPI choice in every cell of the map ---------------------------------------------------

/** What a field holds for each cell, row by row from the bottom; policy is -1 where there is no state. */
const newField = (side) => ({
  side, ready: 0,
  policy: new Int8Array(side * side).fill(-1), angle: new Float32Array(side * side),
  value: new Float32Array(side * side), low: 0, high: 1,
});

function findRange(field) {
  let low = Infinity, high = -Infinity;
  field.policy.forEach((policy, cell) => {
    if (policy < 0) return;
    low = Math.min(low, field.value[cell]);
    high = Math.max(high, field.value[cell]);
  });
  Object.assign(field, { low, high });
}

/** The rooms: the part of position is kept for each cell, the part of memory is added when it is asked. */
class RoomField {
  constructor(values, world, side = 40) {
    this.values = values;
    this.field = newField(side);
    const { theta, K, A, D, S } = values, rows = K * A * D, centres = world.centres, n = centres.length;
    const code = Array.from({ length: side }, (_, i) => (
      intervalCode((i + 0.5) / side, centres, world.positionSigma)));
    // sum_ij g_i(x) g_j(y) theta_ij: first over j for each row of cells, then over i.
    const along = new Float64Array(rows * n);
    this.base = new Float32Array(side * side * rows);
    for (let cy = 0; cy < side; cy++) {
      for (let r = 0; r < rows; r++) for (let i = 0; i < n; i++) {
        let sum = 0;
        for (let j = 0; j < n; j++) sum += code[cy][j] * theta[r * S + i * n + j];
        along[r * n + i] = sum;
      }
      for (let cx = 0; cx < side; cx++) {
        const cell = cy * side + cx;
        if (!blocked((cx + 0.5) / side, (cy + 0.5) / side, world.g.walls)) this.field.policy[cell] = 0;
        for (let r = 0; r < rows; r++) {
          let sum = 0;
          for (let i = 0; i < n; i++) sum += code[cx][i] * along[r * n + i];
          this.base[cell * rows + r] = sum;
        }
      }
    }
    this.field.ready = 1;
  }

  /** Nothing is left to prepare. */
  prepare() { return false; }

  update(readout, memory) {
    const { theta, K, A, D, S, floor } = this.values, { field, base } = this, rows = K * A * D;
    const offset = new Float64Array(rows), first = S - 1 - memory.length;
    for (let r = 0; r < rows; r++) {
      offset[r] = theta[r * S + S - 1];
      for (let j = 0; j < memory.length; j++) if (memory[j]) offset[r] += theta[r * S + first + j];
    }
    const ANGLES = [Math.PI / 2, -Math.PI / 2, Math.PI, 0];
    for (let cell = 0; cell < field.policy.length; cell++) {
      if (field.policy[cell] < 0) continue;
      let best = -Infinity, which = 0;
      for (let i = 0, r = 0; i < K * A; i++) {
        let q = 0;
        for (let d = 0; d < D; d++, r++) q += readout[d] * Math.max(floor, base[cell * rows + r] + offset[r]);
        if (q > best) [best, which] = [q, i];
      }
      field.policy[cell] = Math.floor(which / A);
      field.angle[cell] = ANGLES[which % A];
      field.value[cell] = best;
    }
    findRange(field);
  }
}

/** The racer: each cell shows the heading that is worth most there. Prepared a few cells at a time. */
class RacerField {
  constructor(values, world, side = 24, headings = 8) {
    this.values = values;
    this.world = world;
    this.field = newField(side);
    this.headings = Array.from({ length: headings }, (_, h) => -Math.PI + (2 * Math.PI * h) / headings);
    this.ofHeading = this.headings.map((angle) => (
      values.firstLayer(world.angleCode(angle), world.centres.length ** 2)));
    this.size = values.K * values.A * values.D;
    this.base = new Float32Array(side * side * headings * this.size);
    this.next = 0;
  }

  /** Networks at more cells, for some milliseconds; whether there was anything to do. */
  prepare(milliseconds) {
    const { field, values, world } = this, { side } = field, cells = side * side;
    if (this.next >= cells) return false;
    for (const end = performance.now() + milliseconds; this.next < cells && performance.now() < end; this.next++) {
      const cell = this.next, x = ((cell % side) + 0.5) / side, y = (Math.floor(cell / side) + 0.5) / side;
      const position = values.firstLayer(world.positionCode(x, y), 0);
      this.ofHeading.forEach((more, h) => {
        this.base.set(values.fromFirst(position, more), (cell * this.headings.length + h) * this.size);
      });
    }
    field.ready = this.next / cells;
    return true;
  }

  update(readout) {
    const { base, field, headings } = this, { K, A, D } = this.values;
    for (let cell = 0; cell < this.next; cell++) {
      let best = -Infinity, which = 0;
      for (let i = 0, r = cell * headings.length * this.size; i < headings.length * K * A; i++) {
        let q = 0;
        for (let d = 0; d < D; d++, r++) q += readout[d] * base[r];
        if (q > best) [best, which] = [q, i];
      }
      field.policy[cell] = Math.floor(which / A) % K;
      field.angle[cell] = headings[Math.floor(which / (K * A))];
      field.value[cell] = best;
    }
    findRange(field);
  }
}

// --- Worlds --------------------------------------------------------------------------------------------

/** Object collection: R is a number for each of the six features. */
class Rooms {
  constructor(data) {
    Object.assign(this, data);
    this.g = data.geometry;
    this.pseudoInverse = decodeNumbers(data.pseudoInverse);
    this.values = { sfr: new LinearValues(data.sfr), sf: new LinearValues(data.sf) };
    this.rewards = Float64Array.from(data.presets[0].rewards);
  }

  fields() {
    return { sfr: new RoomField(this.values.sfr, this), sf: new RoomField(this.values.sf, this) };
  }

  start() {
    return { x: this.g.start[0], y: this.g.start[1], memory: this.g.objects.map(() => 0) };
  }

  code({ x, y, memory }) {
    const along = (z) => intervalCode(z, this.centres, this.positionSigma);
    return [...outer(along(x), along(y)), ...memory, 1];
  }

  /** Weights w whose rewards phi . w are closest to R. */
  fit(rewards = this.rewards) {
    return times(this.pseudoInverse, rewards);
  }

  /** phi_j . w for each feature. */
  linearRewards(weights) {
    return Float64Array.from(this.features, (phi) => phi.reduce((sum, x, k) => sum + x * weights[k], 0));
  }

  readouts() {
    return { sfr: this.rewards, sf: this.fit() };
  }

  /** The next state, the reward, and whether the episode is over. */
  step(state, action, noise) {
    const { x, y, picked, feature } = roomStep(state, action, noise[0], this.g);
    const memory = picked < 0 ? state.memory : state.memory.with(picked, 1);
    const next = { x, y, memory };
    return { next, feature, reward: this.rewards[feature], over: feature === this.g.numKinds + 1 };
  }
}

/** The racer: R(phi) = sum_k height_k / n exp(-(phi_k - mu_k)^2 / sigma_k). */
class Racer {
  constructor(data) {
    Object.assign(this, data);
    this.g = data.geometry;
    this.pseudoInverse = decodeNumbers(data.pseudoInverse);
    this.values = { sfr: new NetworkValues(data.sfr), sf: new NetworkValues(data.sf) };
    this.bumps = structuredClone(data.presets[0].bumps);
    const side = data.fitSide;
    this.fitPoints = Array.from({ length: side * side }, (_, i) => (
      markerDistances((Math.floor(i / side) + 0.5) / side, ((i % side) + 0.5) / side, this.g.markers)));
  }

  fields() {
    return { sfr: new RacerField(this.values.sfr, this), sf: new RacerField(this.values.sf, this) };
  }

  start(random = Math.random) {
    return { x: random(), y: random(), angle: -Math.PI + 2 * Math.PI * random() };
  }

  positionCode(x, y) {
    const along = (z) => circleCode(z, this.centres, 1, this.positionSigma);
    return outer(along(x), along(y));
  }

  angleCode(angle) {
    return circleCode(angle, this.angleCentres, 2 * Math.PI, this.angleSigma);
  }

  code({ x, y, angle }) {
    return [...this.positionCode(x, y), ...this.angleCode(angle)];
  }

  component(k, x) {
    const { height, mu, sigma } = this.bumps[k];
    return (height / this.bumps.length) * Math.exp(-((x - mu) ** 2) / sigma);
  }

  rewardAt(phi) {
    return phi.reduce((sum, x, k) => sum + this.component(k, x), 0);
  }

  fit() {
    return times(this.pseudoInverse, Float64Array.from(this.fitPoints, (phi) => this.rewardAt(phi)));
  }

  readouts() {
    const bins = this.bins;
    return { sfr: this.bumps.flatMap((_, k) => bins.map((x) => this.component(k, x))), sf: this.fit() };
  }

  step(state, action, noise) {
    const next = drive(state, action, noise, this.g);
    return { next, reward: this.rewardAt(markerDistances(next.x, next.y, this.g.markers)), over: false };
  }
}

const newWorld = (data) => (data.kind === "rooms" ? new Rooms(data) : new Racer(data));

const mathematics = {
  decodeWeights, decodeNumbers, intervalCode, circleCode, blocked, roomStep, drive, markerDistances,
  LinearValues, NetworkValues, RoomField, RacerField, qOf, gpi, newWorld,
};

// --- Simulation ----------------------------------------------------------------------------------------

/** A small generator of random numbers, so that both agents meet the same noise. */
class Random {
  constructor(seed) { this.state = seed >>> 0; }

  uniform = () => { // mulberry32
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };

  normal = () => {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  };
}

const EXPLORATION = 0.05, EPISODE = 200, TRAIL = 60;

/** What both agents meet in a step; without noise nothing is left to chance. */
const drawStep = (random, noisy) => ({
  noise: [0, 0, 0].map(() => (noisy ? random.normal() : 0)),
  explores: noisy && random.uniform() < EXPLORATION,
  which: random.uniform(),
});

/** One agent on its way through a world. */
class Walker {
  constructor(world, which) {
    this.world = world;
    this.values = world.values[which];
    this.begin(world.start());
  }

  begin(state) {
    Object.assign(this, { state, before: state, steps: 0, reward: 0, over: false, trail: [state] });
  }

  choose(readout) {
    const q = qOf(this.values.at(this.world.code(this.state)), readout);
    return gpi(q, this.values.A);
  }

  step(readout, { noise, explores, which }) {
    const action = explores ? Math.floor(which * this.values.A) : this.choose(readout).action;
    const { next, reward, over } = this.world.step(this.state, action, noise);
    this.before = this.state;
    this.state = next;
    this.reward += reward;
    this.steps += 1;
    this.over = over || this.steps >= EPISODE;
    this.trail.push(next);
    if (this.trail.length > TRAIL) this.trail.shift();
    return reward;
  }
}

/** Both agents, some thousand steps ahead in spare time: the mean reward of 100 steps. */
class Forecast {
  constructor(world, noisy, steps = 4000) {
    this.noisy = noisy;
    this.steps = steps;
    this.readouts = world.readouts();
    this.runs = ["sfr", "sf"].map((which) => (
      { which, walker: new Walker(world, which), random: new Random(2), made: 0, total: 0 }));
    for (const run of this.runs) run.walker.begin(world.start(run.random.uniform));
  }

  get done() { return this.runs.every((run) => run.made >= this.steps); }

  /** Whether there was anything to do. */
  run(milliseconds) {
    if (this.done) return false;
    const end = performance.now() + milliseconds;
    while (performance.now() < end && !this.done) {
      for (const run of this.runs) {
        const { walker, random } = run;
        run.total += walker.step(this.readouts[run.which], drawStep(random, this.noisy));
        run.made += 1;
        if (walker.over) walker.begin(walker.world.start(random.uniform));
      }
    }
    return true;
  }

  per100(which) {
    const { made, total } = this.runs.find((run) => run.which === which);
    return made ? (100 * total) / made : 0;
  }
}

// --- Pictures ------------------------------------------------------------------------------------------

/** Okabe and Ito's colours, told apart by the colour-blind; the last is a grey. */
const POLICY_COLOURS = [
  [0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [213, 94, 0], [190, 176, 0],
  [128, 128, 128],
];
const css = ([r, g, b], alpha = 1) => `rgba(${r}, ${g}, ${b}, ${alpha})`;
/** From the least to the largest value: pale to deep, in equal steps of lightness. */
const VALUE_COLOURS = [[250, 243, 221], [183, 219, 197], [97, 179, 178], [38, 123, 155], [27, 60, 109]];

function valueColour(part) {
  const at = clamp(part, 0, 1) * (VALUE_COLOURS.length - 1), i = Math.min(Math.floor(at), VALUE_COLOURS.length - 2);
  return VALUE_COLOURS[i].map((low, c) => low + (at - i) * (VALUE_COLOURS[i + 1][c] - low));
}

const MARGIN = 0.03;

/** A canvas with y upwards and the unit square in it. */
class MapView {
  constructor(canvas, world) {
    this.canvas = canvas;
    this.world = world;
    this.context = canvas.getContext("2d");
    this.layer = document.createElement("canvas");
    this.resize();
  }

  resize() {
    const width = Math.max(Math.round(this.canvas.clientWidth * (window.devicePixelRatio || 1)), 1);
    if (this.canvas.width !== width) [this.canvas.width, this.canvas.height] = [width, width];
    this.scale = width / (1 + 2 * MARGIN);
  }

  px(x) { return (x + MARGIN) * this.scale; }
  py(y) { return (1 + MARGIN - y) * this.scale; }

  /** The point of the square under the pointer. */
  place(event) {
    const box = this.canvas.getBoundingClientRect(), inside = (z) => clamp(z, 0.0001, 0.9999);
    return {
      x: inside(((event.clientX - box.left) / box.width) * (1 + 2 * MARGIN) - MARGIN),
      y: inside(1 + MARGIN - ((event.clientY - box.top) / box.height) * (1 + 2 * MARGIN)),
    };
  }

  /** The colours of the cells, a pixel each; stretched smoothly when drawn. */
  colourCells(field, colourBy, theme) {
    const { side } = field, picture = new ImageData(side, side), span = field.high - field.low || 1;
    field.policy.forEach((policy, cell) => {
      if (policy < 0) return;
      const part = (field.value[cell] - field.low) / span;
      const row = side - 1 - Math.floor(cell / side), i = 4 * (row * side + (cell % side));
      const colour = colourBy === "value" ? valueColour(theme.dark ? 0.15 + 0.85 * part : part) : POLICY_COLOURS[policy];
      for (let c = 0; c < 3; c++) picture.data[i + c] = colour[c];
      picture.data[i + 3] = 255 * (colourBy === "value" ? 0.9 : 0.16 + 0.5 * part);
    });
    [this.layer.width, this.layer.height] = [side, side];
    this.layer.getContext("2d").putImageData(picture, 0, 0);
  }

  /** An arrow in each of 20 x 20 places (10 x 10 where the map is small). */
  arrows(field, theme, colourBy) {
    const { context, scale } = this, { side } = field;
    const wanted = this.canvas.clientWidth < 260 ? 10 : 20;
    const every = Math.max(1, Math.round(side / wanted)), first = Math.floor(every / 2), length = 0.3 * every / side * scale;
    context.lineWidth = Math.max(1, 0.0035 * scale);
    context.lineCap = context.lineJoin = "round";
    context.strokeStyle = theme.arrow;
    for (const light of colourBy === "value" ? [false, true] : [false]) {
      context.strokeStyle = light ? "rgba(255, 255, 255, 0.85)" : theme.arrow;
      context.beginPath();
      for (let cy = first; cy < side; cy += every) for (let cx = first; cx < side; cx += every) {
        const cell = cy * side + cx;
        if (field.policy[cell] < 0) continue;
        const part = (field.value[cell] - field.low) / (field.high - field.low || 1);
        if (colourBy === "value" && light !== part > 0.55) continue;
        const x = this.px((cx + 0.5) / side), y = this.py((cy + 0.5) / side);
        const c = Math.cos(field.angle[cell]) * length, s = -Math.sin(field.angle[cell]) * length;
        context.moveTo(x - c, y - s);
        context.lineTo(x + c, y + s);
        context.moveTo(x + 0.3 * c - 0.5 * s, y + 0.3 * s + 0.5 * c);
        context.lineTo(x + c, y + s);
        context.lineTo(x + 0.3 * c + 0.5 * s, y + 0.3 * s - 0.5 * c);
      }
      context.stroke();
    }
  }

  draw({ field, walker, blend, inspected, colourBy, theme, policy }) {
    const { context, scale } = this, side = this.canvas.width;
    context.clearRect(0, 0, side, side);
    context.fillStyle = theme.floor;
    context.fillRect(this.px(0), this.py(1), scale, scale);
    context.imageSmoothingEnabled = true;
    context.drawImage(this.layer, this.px(0), this.py(1), scale, scale);
    this.arrows(field, theme, colourBy);
    if (this.world.kind === "rooms") this.drawGoal(theme);
    context.strokeStyle = theme.wall;
    context.lineWidth = 0.012 * scale;
    context.lineJoin = "miter";
    context.strokeRect(this.px(0), this.py(1), scale, scale);
    if (this.world.kind === "rooms") this.drawRooms(walker.state.memory, theme);
    else this.drawMarkers(theme);
    this.drawTrail(walker, blend, theme);
    this.drawAgent(walker, blend, theme, policy);
    if (inspected) this.drawPointer(inspected, theme);
  }

  disc(x, y, radius, fill, line, width = 0.006) {
    const { context, scale } = this;
    context.beginPath();
    context.arc(this.px(x), this.py(y), radius * scale, 0, 2 * Math.PI);
    if (fill) { context.fillStyle = fill; context.fill(); }
    if (line) { context.strokeStyle = line; context.lineWidth = width * scale; context.stroke(); }
  }

  text(x, y, text, height, colour) {
    const { context, scale } = this;
    context.font = `600 ${height * scale}px system-ui, sans-serif`;
    [context.textAlign, context.textBaseline, context.fillStyle] = ["center", "middle", colour];
    context.fillText(text, this.px(x), this.py(y));
  }

  drawGoal(theme) {
    const { goal, goalRadius, start } = this.world.g;
    this.disc(...goal, goalRadius, theme.goalFloor, theme.goal, 0.008);
    this.text(...goal, "home", 0.045, theme.goal);
    this.disc(...start, 0.028, null, theme.quiet, 0.004);
  }

  drawRooms(memory, theme) {
    const { context, scale } = this, { walls, objects, kindOfObject } = this.world.g;
    context.fillStyle = theme.wall;
    for (const [xLow, xHigh, yLow, yHigh] of walls) {
      context.fillRect(this.px(xLow), this.py(yHigh), (xHigh - xLow) * scale, (yHigh - yLow) * scale);
    }
    objects.forEach(([x, y], j) => {
      const { colour, shape } = this.world.kinds[kindOfObject[j]], r = 0.034;
      const corners = shape === "box"
        ? [[-0.8, -0.8], [0.8, -0.8], [0.8, 0.8], [-0.8, 0.8]] : [[-0.95, -0.75], [0.95, -0.75], [0, 0.95]];
      context.beginPath();
      for (const [u, v] of corners) context.lineTo(this.px(x + r * u), this.py(y + r * v));
      context.closePath();
      context.lineJoin = "round";
      context.globalAlpha = memory[j] ? 0.4 : 1;
      context.lineWidth = 0.008 * scale;
      context.setLineDash(memory[j] ? [0.012 * scale, 0.012 * scale] : []);
      context.strokeStyle = memory[j] ? colour : "white";
      context.stroke();
      if (!memory[j]) { context.fillStyle = colour; context.fill(); }
      context.globalAlpha = 1;
      context.setLineDash([]);
    });
  }

  drawMarkers(theme) {
    const { context, scale } = this;
    context.save();
    context.beginPath();
    context.rect(this.px(0), this.py(1), scale, scale);
    context.clip();
    this.world.g.markers.forEach(([x, y], k) => {
      const { height, mu } = this.world.bumps[k];
      // The ring of the preferred distance, also where it leaves the square and comes in on the other side.
      context.setLineDash([0.014 * scale, 0.014 * scale]);
      for (const dx of [-1, 0, 1]) for (const dy of [-1, 0, 1]) {
        if (height) this.disc(x + dx, y + dy, mu * Math.SQRT1_2, null, height > 0 ? theme.liked : theme.disliked, 0.005);
      }
      context.setLineDash([]);
      this.disc(x, y, 0.03, theme.marker, "white", 0.006);
      this.text(x, y - 0.002, String(k + 1), 0.036, "white");
    });
    context.restore();
  }

  drawTrail({ trail }, blend, theme) {
    const { context, scale } = this;
    context.lineWidth = 0.009 * scale;
    context.lineCap = "round";
    for (let i = 1; i < trail.length - 1; i++) {
      const a = trail[i - 1], b = trail[i];
      if (Math.hypot(a.x - b.x, a.y - b.y) > 0.5) continue; // across the border of the torus
      context.strokeStyle = theme.ink;
      context.globalAlpha = (0.65 * i) / trail.length;
      context.beginPath();
      context.moveTo(this.px(a.x), this.py(a.y));
      context.lineTo(this.px(b.x), this.py(b.y));
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  drawAgent({ state, before }, blend, theme, policy) {
    const { context, scale } = this, far = Math.hypot(state.x - before.x, state.y - before.y) > 0.5;
    const t = far ? 1 : blend, x = before.x + t * (state.x - before.x), y = before.y + t * (state.y - before.y);
    if (state.angle !== undefined) {
      context.beginPath();
      for (const [turn, length] of [[0, 0.05], [2.5, 0.034], [Math.PI, 0.012], [-2.5, 0.034]]) {
        const angle = state.angle + turn;
        context.lineTo(this.px(x + length * Math.cos(angle)), this.py(y + length * Math.sin(angle)));
      }
      context.closePath();
      [context.fillStyle, context.strokeStyle, context.lineWidth] = [css(POLICY_COLOURS[policy]), theme.ink, 0.008 * scale];
      context.lineJoin = "round";
      context.stroke();
      context.fill();
      return;
    }
    this.disc(x, y, 0.03, theme.ink, "white", 0.006);
    this.disc(x, y, 0.017, css(POLICY_COLOURS[policy]), null);
  }

  drawPointer({ x, y }, theme) {
    const { context, scale } = this;
    for (const [width, colour] of [[0.012, "white"], [0.005, theme.ink]]) {
      context.strokeStyle = colour;
      context.lineWidth = width * scale;
      context.beginPath();
      for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
        context.moveTo(this.px(x + 0.012 * dx), this.py(y + 0.012 * dy));
        context.lineTo(this.px(x + 0.032 * dx), this.py(y + 0.032 * dy));
      }
      context.stroke();
    }
  }
}

// --- Elements of the page ------------------------------------------------------------------------------

/** An element with attributes and children; "class", "text" and on... as one would write them. */
function element(tag, attributes = {}, ...children) {
  const node = tag === "svg" || tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.replace("svg:", "")) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

const signed = (x, digits = 2) => {
  const text = Math.abs(x).toFixed(digits);
  return Number(text) === 0 ? text : (x < 0 ? "\u2212" : "") + text;
};

/** A small picture of a feature: an object, the goal, nothing, a marker. */
function icon(look) {
  const shapes = {
    box: () => element("svg:rect", { x: 3, y: 3, width: 14, height: 14, rx: 2, fill: look.colour }),
    triangle: () => element("svg:path", { d: "M10 2.5 L18 17 L2 17 Z", fill: look.colour }),
    both: () => element("svg:path", { d: "M1 4 h8 v12 h-8 Z M15 4 L20 16 L10 16 Z", fill: look.colour }),
    disc: () => element("svg:circle", { cx: 10, cy: 10, r: 7.5, fill: look.colour }),
    ring: () => element("svg:circle", { cx: 10, cy: 10, r: 7, fill: "none", stroke: look.colour, "stroke-width": 3 }),
    none: () => element("svg:path", { d: "M4 10 h12", stroke: look.colour, "stroke-width": 2.5, "stroke-dasharray": "2.5 2.5" }),
    box_outline: () => element("svg:rect", { x: 4, y: 4, width: 12, height: 12, rx: 2, fill: "none", stroke: look.colour, "stroke-width": 2.5 }),
    triangle_outline: () => element("svg:path", { d: "M10 4 L17 16.5 L3 16.5 Z", fill: "none", stroke: look.colour, "stroke-width": 2.5, "stroke-linejoin": "round" }),
  };
  return element("svg", { viewBox: "0 0 20 20", class: "live-icon", "aria-hidden": "true" }, shapes[look.shape]());
}

/** A slider with its label and value; returns { node, set }. */
function slider({ label, look, min, max, step, input, note = false }) {
  const output = element("output", {}), range = element("input", { type: "range", min, max, step });
  const hint = element("span", { class: "live-hint" });
  if (look) range.style.setProperty("--live-slider", look.accent ?? look.colour);
  const percent = (value) => `${(100 * (clamp(value, min, max) - min)) / (max - min)}%`;
  range.addEventListener("input", () => input(Number(range.value)));
  const name = element("span", { class: "live-name" }, ...(look ? [icon(look)] : []), label);
  const node = element("label", { class: "live-slider" }, name, range, output, ...(note ? [hint] : []));
  const set = (value, text, hintText = "") => {
    range.value = value;
    // The track is filled from zero, or from its left end.
    range.style.setProperty("--live-from", percent(Math.min(0, value)));
    range.style.setProperty("--live-to", percent(Math.max(0, value)));
    output.textContent = text ?? signed(value);
    range.setAttribute("aria-valuetext", output.textContent);
    hint.textContent = hintText;
  };
  return { node, set };
}

/** value x readout = contribution, a row for each entry, and their sum: the dot product, seen. */
class ProductTable {
  constructor(host, rows, names) {
    this.rows = rows.map(({ label, look, full }) => {
      const bar = element("i", {}), part = element("i", {});
      const cells = [
        element("th", { scope: "row" }, icon(look), element("span", { text: label })),
        element("td", { class: "live-bar" }, bar), element("td", { class: "live-number" }),
        element("td", { class: "live-number live-times" }),
        element("td", { class: "live-bar live-diverging" }, part), element("td", { class: "live-number" }),
      ];
      if (look.colour) bar.style.background = look.accent ?? look.colour;
      return { node: element("tr", {}, ...cells), cells, bar, part, full };
    });
    this.sum = element("td", { class: "live-number" });
    const heads = [["", 1], [names.value, 2], [names.readout, 1], [names.part, 2]];
    const columns = Array.from({ length: 6 }, () => element("col"));
    host.replaceChildren(element("table", { class: "live-product" }, element("colgroup", {}, ...columns),
      element("thead", {}, element("tr", {}, ...heads.map(([text, colspan]) => element("th", { colspan, text })))),
      element("tbody", {}, ...this.rows.map((row) => row.node)),
      element("tfoot", {}, element("tr", {}, element("th", { colspan: 5, text: names.sum }), this.sum))));
  }

  update(value, readout) {
    const parts = Array.from(value, (x, d) => x * readout[d]);
    const most = Math.max(0.5, ...Array.from(value, (x, d) => (this.rows[d].full ? 0 : Math.abs(x))));
    const largest = Math.max(0.1, ...parts.map(Math.abs));
    this.rows.forEach(({ cells, bar, part, full }, d) => {
      bar.style.width = `${clamp((100 * Math.abs(value[d])) / (full ?? most), 0, 100)}%`;
      bar.classList.toggle("live-negative", value[d] < 0);
      const share = (50 * parts[d]) / largest;
      part.style.left = `${Math.min(50, 50 + share)}%`;
      part.style.width = `${Math.abs(share)}%`;
      part.classList.toggle("live-minus", parts[d] < 0);
      cells[2].textContent = signed(value[d]);
      cells[3].textContent = signed(readout[d]);
      cells[5].textContent = signed(parts[d]);
    });
    this.sum.textContent = signed(parts.reduce((sum, x) => sum + x, 0));
  }
}

/** CSFR: how often each distance will be met (bars), and what it is worth (line), for every marker. */
class DistanceCharts {
  constructor(host, world) {
    this.world = world;
    const bins = world.bins.length, W = 220, H = 84;
    this.H = H;
    this.charts = world.g.markers.map((_, k) => {
      const bars = world.bins.map((x, j) => element("svg:rect", {
        x: (j * W) / bins + 2, width: W / bins - 4, rx: 1.5, class: "live-xi-bar" }));
      const line = element("svg:path", { class: "live-reward-line" });
      const part = element("span", { class: "live-number" });
      const node = element("figure", { class: "live-chart" },
        element("figcaption", {}, icon({ shape: "disc", colour: "var(--live-marker)" }), `marker ${k + 1}`, part),
        element("svg", { viewBox: `-2 0 ${W + 4} ${H + 14}`, role: "img", "aria-label": `xi over the distance to marker ${k + 1}` },
          ...bars, line,
          element("svg:path", { d: `M0 ${H} h${W}`, class: "live-axis" }),
          ...[[0, "0", "start"], [W / 2, "distance", "middle"], [W, "1", "end"]].map(([x, text, anchor]) => (
            element("svg:text", { x, y: H + 12, "text-anchor": anchor, text })))));
      return { node, bars, line, part };
    });
    this.sum = element("strong", {});
    this.W = W;
    host.replaceChildren(
      element("div", { class: "live-charts" }, ...this.charts.map((chart) => chart.node)),
      element("p", { class: "live-sum" }, "Q = \u03be \u00b7 R = ", this.sum));
  }

  update(value, readout) {
    const { world, H, W } = this, U = world.bins.length, most = Math.max(1, ...value);
    let total = 0;
    this.charts.forEach(({ bars, line, part }, k) => {
      let sum = 0;
      bars.forEach((bar, j) => {
        const height = (H - 4) * (value[k * U + j] / most);
        bar.setAttribute("height", height.toFixed(1));
        bar.setAttribute("y", (H - height).toFixed(1));
        sum += value[k * U + j] * readout[k * U + j];
      });
      line.setAttribute("d", curve((x) => world.component(k, x) * world.bumps.length, W, H));
      part.textContent = `\u03be \u00b7 r = ${signed(sum)}`;
      total += sum;
    });
    this.sum.textContent = signed(total);
  }
}

/** The path of y(x), x in [0, 1], for y in [-1, 1]. */
const curve = (y, W, H) => Array.from({ length: 81 }, (_, i) => {
  const height = H / 2 - (H / 2 - 4) * clamp(y(i / 80), -1, 1);
  return `${i ? "L" : "M"}${((W * i) / 80).toFixed(1)} ${height.toFixed(1)}`;
}).join("");

// --- The panels of each world --------------------------------------------------------------------------

const QUIET = { shape: "none", colour: "var(--live-quiet)" };
const HOME = { shape: "ring", colour: "var(--live-goal)" };

/** Sliders, product tables and words of the rooms. */
class RoomPanels {
  constructor(world, hosts, changed) {
    this.world = world;
    const looks = [QUIET, ...world.kinds.map(({ colour, shape }) => ({ colour, shape })), HOME];
    const properties = [
      { label: "orange", look: { shape: "both", colour: world.kinds[0].colour } },
      { label: "blue", look: { shape: "both", colour: world.kinds[2].colour } },
      { label: "box", look: { shape: "box_outline", colour: "var(--live-ink)", accent: "var(--live-soft)" } },
      { label: "triangle", look: { shape: "triangle_outline", colour: "var(--live-ink)", accent: "var(--live-soft)" } },
      { label: "home", look: HOME },
    ];
    const features = looks.map((look, j) => ({ look, label: ["nothing", ...world.kinds.map((kind) => kind.name), "home"][j] }));
    const total = 1 / (1 - world.gamma);
    this.tables = {
      sfr: new ProductTable(hosts.sfr, features.map((row, j) => (j ? row : { ...row, full: total })), {
        value: "\u03be: times met", readout: "\u00d7 R", part: "=", sum: "Q = \u03be \u00b7 R" }),
      sf: new ProductTable(hosts.sf, properties, {
        value: "\u03c8: times met", readout: "\u00d7 w", part: "=", sum: "Q = \u03c8 \u00b7 w" }),
    };
    this.byProperty = true;
    this.linear = properties.map(({ label, look }, k) => slider({ label, look, min: -1, max: 1, step: 0.05,
      input: (value) => { this.weights[k] = value; world.rewards = world.linearRewards(this.weights); changed(); } }));
    this.general = features.map(({ label, look }, j) => slider({ label: j ? label : "each step", look, note: true,
      min: j ? -1 : -0.1, max: j ? 1 : 0.1, step: j ? 0.05 : 0.005,
      input: (value) => { world.rewards[j] = value; changed(); } }));
    const radios = [["true", "by property (linear)"], ["false", "each kind by itself"]].map(([value, text]) => (
      element("label", {}, element("input", { type: "radio", name: "live-mode", value,
        onchange: () => { this.byProperty = value === "true"; if (this.byProperty) this.straighten(); changed(); } }), text)));
    this.radios = radios.map((label) => label.firstChild);
    this.lists = [this.linear, this.general].map((list) => element("div", { class: "live-sliders" }, ...list.map((s) => s.node)));
    hosts.sliders.replaceChildren(
      element("fieldset", { class: "live-modes" }, element("legend", { text: "Reward" }), ...radios), ...this.lists);
    this.take(world.presets[0]);
  }

  take({ rewards }) {
    this.world.rewards = Float64Array.from(rewards);
    this.byProperty = this.misfit() < 1e-9;
    this.weights = this.world.fit();
  }

  /** The sum of absolute errors of the best linear reward. */
  misfit() {
    const fitted = this.world.linearRewards(this.world.fit());
    return this.world.rewards.reduce((sum, reward, j) => sum + Math.abs(reward - fitted[j]), 0);
  }

  /** The closest linear reward takes the place of a general one. */
  straighten() {
    this.weights = this.world.fit().map((weight) => clamp(weight, -1, 1));
    this.world.rewards = this.world.linearRewards(this.weights);
  }

  showReward() {
    const { world } = this, fitted = world.linearRewards(world.fit());
    if (!this.byProperty) this.weights = world.fit();
    this.lists[0].hidden = !this.byProperty;
    this.lists[1].hidden = this.byProperty;
    this.radios.forEach((radio) => { radio.checked = (radio.value === "true") === this.byProperty; });
    this.linear.forEach((s, k) => s.set(this.weights[k]));
    this.general.forEach((s, j) => {
      const off = Math.abs(fitted[j] - world.rewards[j]) > 0.004;
      s.set(world.rewards[j], signed(world.rewards[j], j ? 2 : 3), off ? `SF sees ${signed(fitted[j], j ? 2 : 3)}` : "");
    });
    const misfit = this.misfit();
    return misfit < 1e-9
      ? "This reward is linear: both agents see it as it is."
      : `Not linear: the closest linear reward misses by ${misfit.toFixed(2)} in sum, and that is what SF acts on.`;
  }

  showProduct(which, value, readout) { this.tables[which].update(value, readout); }

  does(action) { return ["up", "down", "to the left", "to the right"][action]; }

  get reward() { return Array.from(this.world.rewards); }

  set reward(numbers) { this.take({ rewards: numbers }); }
}

/** Sliders, charts and words of the racer. */
class RacerPanels {
  constructor(world, hosts, changed) {
    this.world = world;
    this.tables = {
      sfr: new DistanceCharts(hosts.sfr, world),
      sf: new ProductTable(hosts.sf, world.g.markers.map((_, k) => (
        { label: `distance to ${k + 1}`, look: { shape: "disc", colour: "var(--live-marker)" } })), {
        value: "\u03c8: sum", readout: "\u00d7 w", part: "=", sum: "Q = \u03c8 \u00b7 w" }),
    };
    const W = 220, H = 54;
    this.size = [W, H];
    this.groups = world.bumps.map((bump, k) => {
      const control = (name, label, min, max, step) => slider({ label, min, max, step,
        look: null, input: (value) => { world.bumps[k][name] = name === "sigma" ? value * value : value; changed(); } });
      const sliders = {
        height: control("height", "worth", -1, 1, 0.05), mu: control("mu", "at distance", 0, 1, 0.01),
        sigma: control("sigma", "width", 0.03, 0.3, 0.005),
      };
      const line = element("svg:path", { class: "live-reward-line" }), fit = element("svg:path", { class: "live-fit-line" });
      const node = element("fieldset", { class: "live-marker" }, element("legend", { text: `Distance to marker ${k + 1}` }),
        element("svg", { viewBox: `-2 0 ${W + 4} ${H}`, "aria-hidden": "true" },
          element("svg:path", { d: `M0 ${H / 2} h${W}`, class: "live-axis" }), fit, line),
        ...Object.values(sliders).map((s) => s.node));
      return { node, sliders, line, fit };
    });
    hosts.sliders.replaceChildren(...this.groups.map((group) => group.node));
  }

  take({ bumps }) { this.world.bumps = structuredClone(bumps); }

  showReward() {
    const { world, size } = this, weights = world.fit(), n = world.bumps.length;
    this.groups.forEach(({ sliders, line, fit }, k) => {
      const { height, mu, sigma } = world.bumps[k];
      sliders.height.set(height);
      sliders.mu.set(mu);
      sliders.sigma.set(Math.sqrt(sigma));
      line.setAttribute("d", curve((x) => n * world.component(k, x), ...size));
      fit.setAttribute("d", curve((x) => n * weights[k] * x, ...size));
    });
    return "Solid: the reward of each distance. Dashed: the straight line that SF acts on.";
  }

  showProduct(which, value, readout) { this.tables[which].update(value, readout); }

  does(action) { return ["turns right", "drives straight on", "turns left"][action]; }

  get reward() { return this.world.bumps.flatMap(({ height, mu, sigma }) => [height, mu, sigma]); }

  set reward(numbers) {
    this.take({ bumps: [0, 3, 6].map((i) => ({ height: numbers[i], mu: numbers[i + 1], sigma: numbers[i + 2] })) });
  }
}

// --- The component -------------------------------------------------------------------------------------

/** One tab: a world, its two agents, their fields and panels. */
class Scene {
  constructor(data, hosts, changed) {
    this.world = newWorld(data);
    this.fields = this.world.fields();
    this.walkers = { sfr: new Walker(this.world, "sfr"), sf: new Walker(this.world, "sf") };
    this.panels = data.kind === "rooms"
      ? new RoomPanels(this.world, hosts, changed) : new RacerPanels(this.world, hosts, changed);
    this.random = new Random(1);
    this.restart(this.world.start(this.random.uniform));
  }

  restart(state) { for (const walker of Object.values(this.walkers)) walker.begin(state); }
}

const AGENTS = ["sfr", "sf"];

class LiveXi {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.canvases = Object.fromEntries(AGENTS.map((which) => [which, this.part(`map-${which}`)]));
    this.scenes = {};
    this.calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    Object.assign(this, { playing: !this.calm, speed: 10, noisy: true, colourBy: "policy", pointer: null, owed: 0, shown: true });
    this.part("still").hidden = true;
    this.part("app").hidden = false;
    this.readTheme();
    this.buildControls();
    this.listen();
    if (!this.readLink()) this.open("rooms");
    this.showPlaying();
    requestAnimationFrame((time) => this.loop(time));
  }

  get scene() { return this.scenes[this.tab]; }

  // Building ------------------------------------------------------------------------------------------

  buildControls() {
    this.tabs = [...this.root.querySelectorAll("[role=tab]")];
    this.tabs.forEach((tab, i) => {
      tab.addEventListener("click", () => this.open(tab.dataset.world));
      tab.addEventListener("keydown", ({ key }) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
        if (step) this.tabs[(i + step + this.tabs.length) % this.tabs.length].focus();
      });
    });
    this.part("preset").addEventListener("change", ({ target }) => {
      if (target.value === "") return;
      this.scene.panels.take(this.scene.world.presets[Number(target.value)]);
      this.rewardChanged(true);
    });
    this.part("play").addEventListener("click", () => this.setPlaying(!this.playing));
    this.part("again").addEventListener("click", () => this.startAgain());
    this.part("speed").addEventListener("input", ({ target }) => { this.speed = Number(target.value); });
    this.part("noise").addEventListener("change", ({ target }) => { this.noisy = target.checked; this.startForecast(); });
    this.part("link").addEventListener("click", () => this.copyLink());
    for (const radio of this.root.querySelectorAll("input[name=live-colour]")) {
      radio.addEventListener("change", () => { this.colourBy = radio.value; this.stale(); });
    }
  }

  listen() {
    for (const canvas of Object.values(this.canvases)) {
      canvas.addEventListener("pointermove", (event) => this.pointAt(this.placeOf(event)));
      canvas.addEventListener("pointerleave", () => this.pointAt(null));
      canvas.addEventListener("click", (event) => { this.putAgents(this.placeOf(event)); });
      canvas.addEventListener("keydown", (event) => this.moveByKey(event));
      canvas.addEventListener("blur", () => this.pointAt(null));
    }
    // In a page of its own the space bar pauses wherever the focus is; inside another page only in here.
    (this.root.dataset.standalone === undefined ? this.root : document).addEventListener("keydown", (event) => {
      if (event.key !== " " || event.target.closest("button, select, a, summary, [type=checkbox], [type=radio]")) return;
      event.preventDefault();
      this.setPlaying(!this.playing);
    });
    const resized = () => { for (const view of Object.values(this.views ?? {})) view.resize(); this.stale(); };
    new ResizeObserver(resized).observe(this.canvases.sfr);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.readTheme(); this.stale(); });
    new IntersectionObserver((entries) => { this.shown = entries.at(-1).isIntersecting; }).observe(this.root);
  }

  /** Colours of the canvases, as the style sheet has them. */
  readTheme() {
    const style = getComputedStyle(this.root), names = {
      ink: "ink", quiet: "quiet", floor: "floor", wall: "wall", goal: "goal", goalFloor: "goal-floor",
      arrow: "arrow", marker: "marker", liked: "liked", disliked: "disliked" };
    this.theme = Object.fromEntries(Object.entries(names).map(([key, name]) => [key, style.getPropertyValue(`--live-${name}`).trim()]));
    this.theme.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  }

  open(tab) {
    this.tab = tab;
    for (const button of this.tabs) {
      const chosen = button.dataset.world === tab;
      button.setAttribute("aria-selected", chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
    for (const kind of Object.keys(this.data)) {
      for (const node of this.root.querySelectorAll(`[data-only="${kind}"]`)) node.hidden = kind !== tab;
    }
    const hosts = Object.fromEntries(["sfr", "sf", "sliders"].map((name) => [name, this.part(`${name}-${tab}`)]));
    this.scenes[tab] ??= new Scene(this.data[tab], hosts, () => this.rewardChanged());
    const { world } = this.scene;
    this.views = Object.fromEntries(AGENTS.map((which) => [which, new MapView(this.canvases[which], world)]));
    this.part("preset").replaceChildren(element("option", { value: "", text: "your own" }),
      ...world.presets.map(({ name }, i) => element("option", { value: i, text: name })));
    this.part("name-sfr").textContent = world.sfr.name;
    this.buildPolicies();
    this.rewardChanged(true);
  }

  buildPolicies() {
    const { policies } = this.scene.world;
    this.policyRows = policies.map((name, k) => {
      const swatch = element("i", { class: "live-swatch" });
      swatch.style.background = css(POLICY_COLOURS[k]);
      const cells = AGENTS.map(() => ({ bar: element("i", {}), number: element("td", { class: "live-number" }) }));
      for (const { bar } of cells) bar.style.background = css(POLICY_COLOURS[k]);
      const node = element("tr", {}, element("th", { scope: "row" }, swatch, element("span", { text: name })),
        ...cells.flatMap(({ bar, number }) => [element("td", { class: "live-bar" }, bar), number]));
      return { node, cells };
    });
    this.part("policies").replaceChildren(...this.policyRows.map((row) => row.node));
  }

  // Changes -------------------------------------------------------------------------------------------

  /** Anything that the maps or the numbers show has changed. */
  stale() { this.fieldStale = { sfr: true, sf: true }; this.panelStale = true; }

  rewardChanged(byPreset = false) {
    const { panels, world } = this.scene;
    this.readouts = world.readouts();
    this.part("fit").textContent = panels.showReward();
    const same = world.presets.findIndex((preset) => (
      JSON.stringify(preset.rewards ?? preset.bumps) === JSON.stringify(preset.rewards ? panels.reward : world.bumps)));
    this.part("preset").value = same < 0 ? "" : same;
    if (byPreset) this.scene.restart(world.start(this.scene.random.uniform));
    this.stale();
    this.startForecast();
  }

  startForecast() { this.forecast = new Forecast(this.scene.world, this.noisy); }

  startAgain() {
    this.scene.restart(this.scene.world.start(this.scene.random.uniform));
    this.stale();
  }

  putAgents({ x, y }) {
    const { world } = this.scene;
    if (world.kind === "rooms" && blocked(x, y, world.g.walls)) return;
    this.scene.restart({ ...world.start(), x, y });
    this.stale();
  }

  setPlaying(playing) { this.playing = playing; this.showPlaying(); }

  showPlaying() {
    this.part("play").textContent = this.playing ? "Pause" : "Play";
    this.part("play").setAttribute("aria-pressed", this.playing);
  }

  placeOf(event) { return this.views[event.target === this.canvases.sf ? "sf" : "sfr"].place(event); }

  pointAt(place, announce = false) {
    this.pointer = place;
    this.part("caption").setAttribute("aria-live", announce ? "polite" : "off");
    this.panelStale = true;
  }

  moveByKey(event) {
    const step = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (step) {
      const { x, y } = this.pointer ?? this.scene.walkers.sfr.state;
      const cell = (z, by) => clamp(Math.floor(z * 20) + by, 0, 19) / 20 + 0.025;
      this.pointAt({ x: cell(x, step[0]), y: cell(y, step[1]) }, true);
    } else if (event.key === "Escape") this.pointAt(null);
    else if (event.key === "Enter" && this.pointer) this.putAgents(this.pointer);
    else return;
    event.preventDefault();
  }

  // Links ---------------------------------------------------------------------------------------------

  copyLink() {
    const numbers = this.scene.panels.reward.map((x) => Number(x.toFixed(4)));
    location.hash = `live=${this.tab}:${numbers.join(",")}`;
    navigator.clipboard?.writeText(location.href).catch(() => {}); // the address bar has it in any case
    this.part("link").textContent = "Link copied";
    setTimeout(() => { this.part("link").textContent = "Copy link"; }, 1500);
  }

  /** Whether the address names a reward. */
  readLink() {
    const found = /^#live=(rooms|racer):([-\d.,]+)$/.exec(location.hash);
    const numbers = found?.[2].split(",").map(Number) ?? [];
    if (!found || numbers.length !== { rooms: 6, racer: 9 }[found[1]] || !numbers.every(Number.isFinite)) return false;
    if (found[1] === "racer" && [2, 5, 8].some((i) => numbers[i] <= 0)) return false;
    this.open(found[1]);
    this.scene.panels.reward = numbers;
    this.rewardChanged(true);
    return true;
  }

  // Frames --------------------------------------------------------------------------------------------

  loop(time) {
    if (this.shown) this.frame(time - (this.last ?? time));
    this.last = time;
    requestAnimationFrame((next) => this.loop(next));
  }

  frame(milliseconds) {
    if (this.playing) this.advance(Math.min(milliseconds, 100));
    for (const which of AGENTS) this.showMap(which);
    if (this.panelStale) this.showPanels();
    this.panelStale = false;
    if (this.forecast.run(4)) this.showScores();
  }

  advance(milliseconds) {
    const { walkers, world, random } = this.scene;
    this.owed += (milliseconds / 1000) * this.speed;
    for (; this.owed >= 1; this.owed -= 1) {
      const draws = drawStep(random, this.noisy);
      for (const which of AGENTS) {
        const walker = walkers[which], memory = walker.state.memory;
        // Who is home early waits there for the other.
        if (!walker.over) walker.step(this.readouts[which], draws);
        else walker.before = walker.state;
        if (walker.state.memory !== memory) this.fieldStale[which] = true;
      }
      if (AGENTS.every((which) => walkers[which].over)) {
        this.scene.restart(world.start(random.uniform));
        this.fieldStale = { sfr: true, sf: true };
      }
      this.panelStale = true;
    }
  }

  /** The state that is looked at: where the pointer is with what was collected so far, or the agent's own. */
  inspected(which) {
    const { state } = this.scene.walkers[which];
    if (!this.pointer) return state;
    const { field } = this.scene.fields[which], cell = (z) => Math.floor(z * field.side);
    const angle = field.angle[cell(this.pointer.y) * field.side + cell(this.pointer.x)];
    return this.scene.world.kind === "rooms" ? { ...state, ...this.pointer } : { ...this.pointer, angle };
  }

  choice(which, state) {
    const values = this.scene.world.values[which], all = values.at(this.scene.world.code(state));
    const q = qOf(all, this.readouts[which]), { policy, action, value } = gpi(q, values.A);
    const first = (policy * values.A + action) * values.D;
    return { q, policy, action, value, product: all.subarray(first, first + values.D) };
  }

  showMap(which) {
    const { fields, walkers } = this.scene, view = this.views[which], { field } = fields[which];
    if (fields[which].prepare(6)) this.fieldStale[which] = true;
    if (this.fieldStale[which]) {
      fields[which].update(this.readouts[which], walkers[which].state.memory);
      view.colourCells(field, this.colourBy, this.theme);
      this.fieldStale[which] = false;
    }
    const walker = walkers[which], { policy } = this.choice(which, walker.state);
    view.draw({ field, walker, policy, blend: this.calm || !this.playing ? 1 : this.owed,
      inspected: this.pointer, colourBy: this.colourBy, theme: this.theme });
  }

  showPanels() {
    const { world, panels, walkers } = this.scene;
    const choices = AGENTS.map((which) => this.choice(which, this.inspected(which)));
    AGENTS.forEach((which, i) => {
      panels.showProduct(which, choices[i].product, this.readouts[which]);
      const best = this.policyRows.map((_, k) => Math.max(...choices[i].q.subarray(k * world.values[which].A, (k + 1) * world.values[which].A)));
      const most = Math.max(0.1, ...best.map(Math.abs));
      this.policyRows.forEach(({ cells }, k) => {
        cells[i].bar.style.width = `${(100 * Math.max(best[k], 0)) / most}%`;
        cells[i].number.textContent = signed(best[k]);
        cells[i].number.classList.toggle("live-chosen", k === choices[i].policy);
      });
      this.part(`follows-${which}`).textContent = world.policies[choices[i].policy];
      this.part(`episode-${which}`).textContent = signed(walkers[which].reward);
    });
    const { x, y } = this.inspected("sfr"), [sfr, sf] = choices, name = world.sfr.name;
    const move = world.kind === "rooms" ? (action) => `goes ${panels.does(action)}` : panels.does;
    this.part("caption").textContent = `${this.pointer ? "At the pointer" : "At the agent"} (${x.toFixed(2)}, ${y.toFixed(2)}): `
      + `${name} follows \u201c${world.policies[sfr.policy]}\u201d and ${move(sfr.action)}; `
      + `SF${this.pointer ? "" : ", where it is now,"} follows \u201c${world.policies[sf.policy]}\u201d and ${move(sf.action)}.`;
  }

  showScores() {
    const means = AGENTS.map((which) => this.forecast.per100(which)), most = Math.max(0.5, ...means.map(Math.abs));
    AGENTS.forEach((which, i) => {
      this.part(`mean-${which}`).textContent = signed(means[i], 1);
      this.part(`mean-bar-${which}`).style.width = `${(100 * Math.max(means[i], 0)) / most}%`;
    });
  }
}

window.LiveXi = { mathematics, LiveXi, apps: [] };
for (const root of document.querySelectorAll("[data-live-xi]")) window.LiveXi.apps.push(new LiveXi(root));
})();
