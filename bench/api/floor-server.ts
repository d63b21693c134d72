import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'

/** What Node itself can do at the most: the same bytes for everybody, no questions asked. */

const [keyFile = '', certificateFile = ''] = process.argv.slice(2)
const body = Buffer.alloc(1280, 'x')
const server = createServer(
  { key: readFileSync(keyFile), cert: readFileSync(certificateFile) },
  (request, response) => {
    response.writeHead(request.method === 'POST' ? 201 : 200, {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
    })
    response.end(body)
  },
)
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address instanceof Object) console.log(address.port)
})
