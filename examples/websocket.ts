// WebSocket messages: each connection may talk so fast, and all connections of a user together so
// much. A client that goes on is cut off.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createLimiter, gcra } from 'sluice'
import { fakeClock } from 'sluice/testing'
import { WebSocket, WebSocketServer } from 'ws'

const limiter = createLimiter(
  { connection: gcra({ rate: '5/s', burst: 3 }), user: gcra({ rate: '20/s', burst: 40 }) },
  { clock: fakeClock() }, // in production: leave the clock out
)

let connections = 0
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', maxPayload: 16_384 })
server.on('connection', (socket, request) => {
  const user = request.headers['x-user'] as string
  const key = { connection: `connection-${++connections}`, user }
  let warnings = 0
  socket.on('message', (message) => {
    const { allowed, retryAfterMs } = limiter.consume(key)
    if (allowed) return socket.send(`echo ${message}`)
    if (++warnings < 2) return socket.send(`slow down: ${retryAfterMs} ms`)
    socket.close(1008, 'too many messages')
  })
})
await once(server, 'listening')

const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, { headers: { 'x-user': 'ann' } })
client.on('message', (message) => console.log(String(message)))
await once(client, 'open')
for (let k = 1; k <= 5; k++) client.send(`${k}`)
const [code, reason] = await once(client, 'close')
console.log(code, String(reason))
server.close()

// prints:
// echo 1
// echo 2
// echo 3
// slow down: 200 ms
// 1008 too many messages
