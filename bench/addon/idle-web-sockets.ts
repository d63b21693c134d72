import { connect as connectPlain, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { memoryOf } from '../guard/contestants.ts'

/** Where WebSockets are opened, and as whom. */
export interface WebSocketTarget {
  readonly port: number
  readonly path: string
  readonly token: string
  /** Absent where there is no TLS. */
  readonly ca?: string
}

/** How many, and how long a process is left alone before its memory is looked at. */
export interface IdleOrder {
  readonly count: number
  readonly settleMs: number
}

const openedAtOnce = 20
const answerMs = 60_000
/** A masked text frame with one letter, as clients send it. */
const frame = Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0x78])
const kibibytes = 1024

function connect({ port, ca }: WebSocketTarget): Socket {
  const socket =
    ca === undefined
      ? connectPlain(port, '127.0.0.1')
      : connectTls({ port, host: '127.0.0.1', ca, ALPNProtocols: ['http/1.1'] })
  return socket.on('error', () => {}) // heard of as its end
}

/** Waits until what came fulfils the wish; fails when the connection ends before, or takes too long. */
function receive(socket: Socket, isWhole: (heard: Buffer) => boolean): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let heard = Buffer.alloc(0)
    const late = setTimeout(() => socket.destroy(), answerMs)
    const done = (): void => {
      clearTimeout(late)
      socket.off('data', got).off('close', ended)
    }
    const ended = (): void => {
      done()
      reject(new Error(`a WebSocket ended after ${JSON.stringify(heard.toString('latin1'))}`))
    }
    const got = (chunk: Buffer): void => {
      heard = Buffer.concat([heard, chunk])
      if (!isWhole(heard)) return
      done()
      resolve(heard)
    }
    socket.on('data', got).once('close', ended)
  })
}

async function open(target: WebSocketTarget): Promise<Socket> {
  const { path, token } = target
  const lines = [`GET ${path} HTTP/1.1`, 'Host: localhost', `Authorization: Bearer ${token}`]
  const wish = ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13']
  const key = 'Sec-WebSocket-Key: c2FsbHlwb3J0LWJlbmNoLg=='
  const socket = connect(target)
  socket.write([...lines, ...wish, key, '', ''].join('\r\n'))
  const answer = await receive(socket, (heard) => heard.includes('\r\n\r\n'))
  if (answer.toString('latin1').startsWith('HTTP/1.1 101')) return socket
  socket.destroy()
  throw new Error(`no WebSocket at ${path}: ${answer.toString('latin1').slice(0, 500)}`)
}

async function openAll(target: WebSocketTarget, count: number): Promise<Socket[]> {
  const sockets: Socket[] = []
  while (sockets.length < count) {
    const next = Math.min(openedAtOnce, count - sockets.length)
    sockets.push(...(await Promise.all(Array.from({ length: next }, () => open(target)))))
  }
  return sockets
}

/** One frame there and one back on each. */
async function speakOn(sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) {
    const answer = receive(socket, (heard) => heard.length >= 3)
    socket.write(frame)
    await answer
  }
}

/** By how much a process has grown for each WebSocket that nobody uses, in KiB. */
export async function memoryOfEach(
  pid: number,
  target: WebSocketTarget,
  { count, settleMs }: IdleOrder,
): Promise<number> {
  // The first ones make a process load code and grow its pools, which is not the price of one more.
  const first = await openAll(target, Math.ceil(count / 10))
  await speakOn(first)
  for (const socket of first) socket.destroy()
  await delay(settleMs)
  const before = await memoryOf(pid)
  const sockets = await openAll(target, count)
  try {
    await speakOn(sockets)
    await delay(settleMs)
    const after = await memoryOf(pid)
    await speakOn(sockets) // all of them were open until now
    return ((after - before) * kibibytes) / count
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}
