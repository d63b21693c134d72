import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

/** The user that the token of a request names; this add-on believes it without a look at the signature. */
function userOf({ headers }: IncomingMessage): string {
  const payload = headers.authorization?.split('.')[1]
  if (payload === undefined) return 'nobody'
  return JSON.parse(String(Buffer.from(payload, 'base64url'))).sub
}

const page = `<!doctype html><title>naive</title><p id="page">USER</p><p id="xhr"></p><p id="socket"></p>
<img src="/pixel.gif" alt="">
<script type="module">
const show = (id, text) => { document.getElementById(id).textContent = text }
show('xhr', await (await fetch('api/user')).text())
const socket = new WebSocket(new URL('live?x=1', location.href).href.replace(/^http/, 'ws'))
socket.onmessage = ({ data }) => show('socket', data)
socket.onclose = () => show('socket', 'closed')
</script>`

const frame = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)])

/** A web application with a page, a request of the page and a WebSocket, each of which shows its user. */
export async function startNaiveAddon(address: string) {
  const asked: string[] = []
  const upgraded = new Set<Duplex>()
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${userOf(request)}`)
    if (request.url === '/') {
      response.setHeader('content-type', 'text/html')
      response.end(page.replace('USER', userOf(request)))
    } else if (request.url === '/api/user') response.end(userOf(request))
    else response.writeHead(404).end()
  })
  server.on('upgrade', (request, socket) => {
    asked.push(`${request.url} ${userOf(request)}`)
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    upgraded.add(socket.on('error', () => {}))
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    socket.write(frame(userOf(request)))
  })
  server.listen(0, address)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    close: async (): Promise<void> => {
      server.closeAllConnections()
      for (const socket of upgraded) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
