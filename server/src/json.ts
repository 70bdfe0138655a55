/**
 * JSON of strangers, within bounds on its shape: for a megabyte of brackets JSON.parse takes a
 * tenth of a second, in which no other request is answered.
 */

/** A question has five at most. */
export const MAX_LEVELS = 8
/** A batch of 1,000 decisions that have a key and a cost for each of ten limits has fewer. */
export const MAX_VALUES = 32_768

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPENS_LIST, CLOSES_LIST, OPENS_OBJECT, CLOSES_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Throws what is wrong with it. */
export function jsonIn(bytes: Buffer, length: number = bytes.length): unknown {
  checkShape(bytes, length)
  return JSON.parse(bytes.toString('utf8', 0, length))
}

function checkShape(bytes: Buffer, length: number): void {
  let levels = 0
  let values = 1
  let isText = false
  for (let k = 0; k < length; k++) {
    const byte = bytes[k]
    if (isText) {
      if (byte === QUOTE) isText = false
      else if (byte === BACKSLASH) k += 1
    } else if (byte === QUOTE) isText = true
    else if (byte === COMMA) values += 1
    else if (byte === OPENS_LIST || byte === OPENS_OBJECT) {
      levels += 1
      values += 1
      if (levels > MAX_LEVELS)
        throw new Error(`it must have at most ${MAX_LEVELS} levels of lists and objects: byte ${k + 1} begins another`)
    } else if (byte === CLOSES_LIST || byte === CLOSES_OBJECT) levels -= 1
    if (values > MAX_VALUES) throw new Error(`it must have at most ${MAX_VALUES} values: byte ${k + 1} begins another`)
  }
}
