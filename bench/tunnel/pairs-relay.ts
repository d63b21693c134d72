// A relay in two processes, as a tunnel is, that does nothing but copy: what Node can do at the most.
// Usage: pairs-relay.js near|far tcp|tls LISTEN-PORT TO-PORT CA CERT KEY
import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'

const [, , end, kind, listenPort, toPort, ...files] = process.argv
const [ca, cert, key] = files.map((path) => readFileSync(path, 'utf8'))
const identity = { ca, cert, key }
const isTls = kind === 'tls'
const to = { host: '127.0.0.1', port: Number(toPort), noDelay: true }

/** The near end speaks TLS outwards, the far end inwards. */
function open(): Socket {
  return isTls && end === 'near' ? connectTls({ ...to, ...identity }) : connect(to)
}

function relay(socket: Socket): void {
  const other = open()
  socket.setNoDelay(true)
  socket.pipe(other).pipe(socket)
  for (const [each, partner] of [
    [socket, other],
    [other, socket],
  ] as const) {
    each.on('error', () => partner.destroy())
    // What waits for the partner still has to leave.
    each.once('close', () => partner.end())
  }
}

const server =
  isTls && end === 'far'
    ? createTlsServer({ ...identity, requestCert: true, rejectUnauthorized: true }, relay)
    : createServer(relay)
server.listen(Number(listenPort), '127.0.0.1')
