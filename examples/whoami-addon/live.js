// A WebSocket that tells the time once a second: shows that the page's own connections are authenticated too.
import { createHash } from 'node:crypto'

const magic = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const closeOpcode = 0x8
const longestShort = 125

/** A frame of text; ours hold a name at most, so that two bytes of length are enough. */
function textFrame(text) {
  const payload = Buffer.from(text)
  const { length } = payload
  const size = length <= longestShort ? [length] : [126, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([0x81, ...size]), payload])
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
    socket.write(textFrame(JSON.stringify({ seconds, user: user.user })))
  }
  tell()
  const timer = setInterval(tell, 1_000)
  const end = () => {
    clearInterval(timer)
    socket.destroy()
  }
  socket.on('data', (chunk) => {
    // Pages send nothing else: they cannot ping.
    if ((chunk[0] & 0x0f) === closeOpcode) socket.end(Buffer.from([0x88, 0]))
  })
  socket.on('end', end)
  socket.on('error', end)
  socket.on('close', end)
}
