/** The state of a limit in what READ_STRING answers: where limits share a key, names and states take turns. */
export function sectionOf(name: string, reply: unknown): string | undefined {
  if (!Array.isArray(reply)) return (reply ?? undefined) as string | undefined
  const place = reply.findIndex((text, k) => k % 2 === 0 && text === name)
  return place < 0 ? undefined : reply[place + 1]
}

const GRID_US = [2 ** 20, 2 ** 25, 2 ** 30, 2 ** 35]

/** The states in the bytes of a key: those of its sections, or the one that it is. */
function statesIn(bytes: readonly number[]): number[][] {
  const end = bytes.indexOf(10)
  const count = bytes.slice(0, Math.max(end, 0)).filter((byte) => byte === 32).length + 1
  const sizes = bytes.slice(end + 1, end + 1 + count)
  const size = sizes.reduce((sum, one) => sum + one, end + 1 + count)
  if (end < 0 || size !== bytes.length) return [[...bytes]]
  return sizes.map((one, k) => {
    const from = sizes.slice(0, k).reduce((sum, before) => sum + before, end + 1 + count)
    return bytes.slice(from, from + one)
  })
}

/** Until when a key lives at least, as its states say, in µs; by the definitions in kept-time-to-live.md. 0 if they say nothing. */
export function promisedUs(bytes: readonly number[]): number {
  return Math.max(...statesIn(bytes).map((state) => windowEndUs(state) ?? gridEndUs(state)))
}

/** Of a fixed window: the time in seven bytes, four figures, how long before that the window began, and the count. */
function windowEndUs(state: readonly number[]): number | undefined {
  const [first = 0] = state
  if (first < 32 || first >= 64) return undefined
  const atUs = wholeOf([first - 32, ...state.slice(1, 7)])
  const [limit, windowUs, behind] = limitAndWindow(state)
  const sinceSize = bytesOf(windowUs)
  const count = wholeOf(state.slice(behind + sinceSize, behind + sinceSize + bytesOf(limit)))
  return count === 0 ? 0 : atUs - wholeOf(state.slice(behind, behind + sinceSize)) + windowUs
}

/** The first two figures, and where the four end. */
function limitAndWindow(state: readonly number[]): [number, number, number] {
  const figures: number[] = []
  let at = 7
  while (figures.length < 4) {
    let figure = 0
    let unit = 1
    for (; (state[at] as number) >= 64; at++, unit *= 64) figure += ((state[at] as number) - 64) * unit
    figure += (state[at++] as number) * unit
    figures.push(Math.floor(figure / 8) * 10 ** (figure % 8))
  }
  return [figures[0] as number, figures[1] as number, at]
}

const bytesOf = (most: number) => Math.ceil(Math.log2(most + 1) / 8)

const wholeOf = (bytes: readonly number[]) => bytes.reduce((value, byte) => value * 256 + byte, 0)

function gridEndUs([first = 0, ...rest]: readonly number[]): number {
  const gridUs = GRID_US[(first >> 5) - 4]
  if (gridUs === undefined) return 0
  const tatUs = wholeOf([first % 32, ...rest.slice(0, 6)])
  return Math.floor(tatUs / gridUs) * gridUs + gridUs
}
