// A chart of curves as SVG: sizes along one axis, and how many times the smallest figure each one
// is along the other.
const WIDTH = 960
const HEIGHT = 320
/** On the right are the names of the curves. */
const [LEFT, RIGHT, TOP, BOTTOM] = [56, 304, 40, 48]
/** What a number below the axis takes. */
const LABEL = 20
const COLOURS = ['#0b62d6', '#c2410c', '#15803d']

/**
 * `curves` are { name, points: [size, times] }, two of each colour, the second dotted.
 * `scale(size)`: how far along its axis a size is. `goal`: a dashed line, if there is one.
 */
export function chart({ title, sizes, unit, scale, curves, goal }) {
  const most = Math.max(goal ?? 0, 2, ...curves.flatMap(({ points }) => points.map(([, times]) => times)))
  const top = roundUp(most)
  const [first, last] = [scale(sizes[0]), scale(sizes.at(-1))]
  const x = (size) => LEFT + ((scale(size) - first) / (last - first)) * (WIDTH - LEFT - RIGHT)
  const y = (times) => HEIGHT - BOTTOM - (times / top) * (HEIGHT - TOP - BOTTOM)
  const parts = [
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(LEFT, 20, title, 'font-weight="600"'),
    ...axisSteps(top).map((times) => gridLine(y(times), `${times}×`)),
    ...apart(sizes, x).map((size) => text(x(size), HEIGHT - BOTTOM + 18, size.toLocaleString('en'), 'text-anchor="middle"')),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, unit, 'text-anchor="middle" fill="#555"'),
    ...(goal === undefined
      ? []
      : [line(y(goal), 'stroke="#b91c1c" stroke-dasharray="6 4"'), text(LEFT + 4, y(goal) - 5, 'goal for one decision', 'fill="#b91c1c"')]),
    ...curves.map(({ points }, k) => curve(points, x, y, styleOf(k))),
    ...curves.map(({ name }, k) => legend(TOP + 6 + 20 * k, name, styleOf(k))),
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" font-family="sans-serif" font-size="12">
<title>${title}</title>
${parts.join('\n')}
</svg>
`
}

function styleOf(k) {
  return { colour: COLOURS[Math.floor(k / 2) % COLOURS.length], dashes: k % 2 === 0 ? '' : ' stroke-dasharray="2 3"' }
}

function curve(points, x, y, { colour, dashes }) {
  const at = points.map(([size, times]) => [x(size).toFixed(1), y(times).toFixed(1)])
  const dots = at.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`)
  return `<polyline points="${at.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"${dashes}/>${dots.join('')}`
}

function legend(y, name, { colour, dashes }) {
  const x = WIDTH - RIGHT + 24
  return `<line x1="${x}" x2="${x + 24}" y1="${y}" y2="${y}" stroke="${colour}" stroke-width="2"${dashes}/>${text(x + 32, y + 4, name, '')}`
}

function gridLine(y, label) {
  return `${line(y, 'stroke="#ddd"')}${text(LEFT - 8, y + 4, label, 'text-anchor="end" fill="#555"')}`
}

function line(y, style) {
  return `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y.toFixed(1)}" y2="${y.toFixed(1)}" ${style}/>`
}

function text(x, y, words, style) {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${style}>${words}</text>`
}

/** The sizes that there is room for below the axis, the largest among them. */
function apart(sizes, x) {
  let next = Number.POSITIVE_INFINITY
  return sizes.toReversed().filter((size) => {
    const fits = next - x(size) >= LABEL
    if (fits) next = x(size)
    return fits
  })
}

/** Five steps or so, of 1, 2 or 5 times a power of ten. */
function axisSteps(top) {
  const step = stepOf(top)
  return Array.from({ length: Math.round(top / step) + 1 }, (_, k) => Number((k * step).toPrecision(6)))
}

function roundUp(most) {
  const step = stepOf(most)
  return Math.ceil(most / step) * step
}

function stepOf(most) {
  const power = 10 ** Math.floor(Math.log10(most / 5))
  return power * ([1, 2, 5].find((each) => each * power * 5 >= most) ?? 10)
}
