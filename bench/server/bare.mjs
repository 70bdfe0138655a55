// The floor of the service: node:http that parses the same JSON and sends it back.
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  const pieces = []
  request.on('data', (piece) => pieces.push(piece))
  request.on('end', () => {
    const text = JSON.stringify(JSON.parse(Buffer.concat(pieces).toString()))
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text)
  })
})
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ httpPort: server.address().port })))
