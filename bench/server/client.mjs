// A client that takes as little as possible of the machine that it measures: bytes that were made
// before, on connections that stay.
import { connect } from 'node:net'

const CONNECTIONS = 16

/**
 * Posts the same body on every connection, one request after the other, for `ms`. Returns the
 * answers in a second.
 */
export async function answersPerSecond(port, path, body, ms) {
  const text = JSON.stringify(body)
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n`
  const request = Buffer.from(head + text)
  const startMs = performance.now()
  const counts = await Promise.all(Array.from({ length: CONNECTIONS }, () => oneConnection(port, request, startMs + ms)))
  return (counts.reduce((sum, count) => sum + count, 0) / (performance.now() - startMs)) * 1000
}

function oneConnection(port, request, endMs) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let answers = 0
    let missing = 0
    socket.on('connect', () => socket.write(request))
    socket.on('error', reject)
    socket.on('data', (piece) => {
      missing = missing > 0 ? missing - piece.length : bytesMissing(piece)
      if (missing > 0) return
      answers += 1
      if (performance.now() < endMs) socket.write(request)
      else {
        socket.destroy()
        resolve(answers)
      }
    })
  })
}

/** How much of an answer is still to come after its first piece, which holds all its headers. */
function bytesMissing(piece) {
  const end = piece.indexOf('\r\n\r\n') + 4
  const head = piece.toString('latin1', 0, end)
  if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(`the service answered ${head.slice(0, 40)}`)
  return Number(/content-length: (\d+)/i.exec(head)[1]) - (piece.length - end)
}
