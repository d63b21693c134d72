import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { GuardLab } from '../../src/addon/guard/guard-lab.suite.ts'

/** The head of a request. */
export const head = (first: string, ...lines: readonly string[]): string =>
  [first, 'Host: a', ...lines, '', ''].join('\r\n')

/** The line that proves a user. */
export const auth = (lab: GuardLab, sub = 'bob'): string =>
  `Authorization: Bearer ${lab.token({ claims: { sub } })}`

/** Resolves when a connection is closed, however it ends. */
export const closeOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once('close', () => resolve()))

/** A connection whose bytes are collected. */
export async function openRaw(port: number): Promise<{ socket: Socket; heard: () => string }> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
  })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return { socket, heard: () => text }
}

/** The key of a handshake. */
export const websocketKey = 'dGhlIHNhbXBsZSBub25jZQ=='

/** The lines by which a WebSocket is asked for. */
export const websocket: readonly string[] = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  `Sec-WebSocket-Key: ${websocketKey}`,
]
