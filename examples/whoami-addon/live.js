// A WebSocket that tells the time once a second: shows that the page's own connections are authenticated too.
import { createHash } from 'node:crypto'

const magic = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const closeOpcode = 0x8
const pingOpcode = 0x9

/** A frame of text; ours are short. */
function textFrame(text) {
  const payload = Buffer.from(text)
  return Buffer.concat([Buffer.from([0x81, payload.length]), payload])
}

/** Answers the handshake and sends until the other side has gone. */
export function acceptLive(request, socket, user) {
  const key = request.headers['sec-websocket-key']
  const accept = createHash('sha1').update(`${key}${magic}`).digest('base64')
  socket.write(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
  const began = Date.now()
  const tell = () => {
    const seconds = Math.round((Date.now() - began) / 1000)
    // Frames of up to 125 bytes need no longer length; a long name is told by the page itself.
    socket.write(textFrame(JSON.stringify({ seconds, user: user.user.slice(0, 40) }).slice(0, 125)))
  }
  tell()
  const timer = setInterval(tell, 1_000)
  const end = () => {
    clearInterval(timer)
    socket.destroy()
  }
  socket.on('data', (chunk) => {
    const opcode = chunk[0] & 0x0f
    if (opcode === closeOpcode) socket.end(Buffer.from([0x88, 0]))
    else if (opcode === pingOpcode) socket.write(Buffer.from([0x8a, 0]))
  })
  socket.on('end', end)
  socket.on('error', end)
  socket.on('close', end)
}
