// Holds tunnels that nobody uses: node tunnel-idle.js SOCKET TARGET COUNT. Prints "open" when all stand; for every line
// on stdin it sends a byte through each and prints how many came back.
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

const [path = '', target = '', count = '0'] = process.argv.slice(2)
const openedAtOnce = 50
/** `tunnel-load target`: one letter and eight bytes say what to do, here to send back what comes. */
const wish = Buffer.concat([Buffer.from('e'), Buffer.alloc(8)])

/** Waits for this many bytes and fails when the tunnel ends before. */
function receive(socket: Socket, bytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const ended = (): void => reject(new Error('the tunnel ended'))
    const got = (chunk: Buffer): void => {
      chunks.push(chunk)
      const all = Buffer.concat(chunks)
      if (all.length < bytes) return
      socket.off('data', got).off('close', ended)
      resolve(all)
    }
    socket.on('data', got).once('close', ended)
  })
}

async function open(): Promise<Socket> {
  const socket = connect(path)
  socket.on('error', () => {})
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`)
  const answer = await receive(socket, 'HTTP/1.1 200'.length)
  if (!answer.toString().startsWith('HTTP/1.1 200')) throw new Error(answer.toString())
  socket.write(wish)
  return socket
}

async function echo(socket: Socket): Promise<boolean> {
  const answer = receive(socket, 1)
  socket.write('x')
  return answer.then(
    (byte) => byte.toString() === 'x',
    () => false,
  )
}

const sockets: Socket[] = []
while (sockets.length < Number(count)) {
  const next = Math.min(openedAtOnce, Number(count) - sockets.length)
  sockets.push(...(await Promise.all(Array.from({ length: next }, open))))
}
console.log('open')
for await (const _line of createInterface({ input: process.stdin })) {
  let good = 0
  for (const socket of sockets) if (await echo(socket)) good++
  console.log(good)
}
for (const socket of sockets) socket.destroy()
