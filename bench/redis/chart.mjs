// A chart of curves as SVG: sizes along one axis, and how many times the smallest figure each one is along the other.
const WIDTH = 720
const HEIGHT = 320
const [LEFT, RIGHT, TOP, BOTTOM] = [56, 24, 40, 48]
const COLOURS = ['#0b62d6', '#c2410c', '#15803d', '#7c3aed', '#0f766e', '#a21caf']

/** `curves` are { name, points: [size, times] }. `scale`: how far along a size is, Math.log or itself. `goal`: a dashed line, if there is one. */
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
    ...sizes.map((size) => text(x(size), HEIGHT - BOTTOM + 18, size.toLocaleString('en'), 'text-anchor="middle"')),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, unit, 'text-anchor="middle" fill="#555"'),
    ...(goal === undefined
      ? []
      : [line(y(goal), 'stroke="#b91c1c" stroke-dasharray="6 4"'), text(LEFT + 4, y(goal) - 5, 'goal', 'fill="#b91c1c"')]),
    ...curves.map(({ points }, k) => curve(points, x, y, COLOURS[k % COLOURS.length])),
    ...curves.map(({ name }, k) => text(LEFT + 12, TOP + 14 + 16 * k, name, `fill="${COLOURS[k % COLOURS.length]}"`)),
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" font-family="sans-serif" font-size="12">
<title>${title}</title>
${parts.join('\n')}
</svg>
`
}

function curve(points, x, y, colour) {
  const at = points.map(([size, times]) => `${x(size).toFixed(1)},${y(times).toFixed(1)}`)
  const dots = at.map((each) => `<circle cx="${each.split(',')[0]}" cy="${each.split(',')[1]}" r="3" fill="${colour}"/>`)
  return `<polyline points="${at.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>${dots.join('')}`
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
