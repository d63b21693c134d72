import { readFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'

/** A server of one ConfigMap of 1.3 KB, by HTTP/1.1 and HTTP/2, for whoever has the token. */

const [keyFile = '', certificateFile = '', token = ''] = process.argv.slice(2)
const body = Buffer.from(
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', namespace: 'default', uid: 'u', resourceVersion: '1' },
    data: { text: 'x'.repeat(1150) },
  }),
)
const server = createSecureServer(
  { key: readFileSync(keyFile), cert: readFileSync(certificateFile), allowHTTP1: true },
  (request, response) => {
    const known = request.headers.authorization === `Bearer ${token}`
    // Whoever wants to make something first is told that it is there.
    response.writeHead(known ? (request.method === 'POST' ? 409 : 200) : 401, {
      'Content-Type': 'application/json',
      'Content-Length': body.length,
    })
    response.end(body)
  },
)
// Allowing HTTP/1.1 leaves this unset, which ends every connection after its first request.
Object.assign(server, { keepAliveTimeout: 60_000 })
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address instanceof Object) console.log(address.port)
})
