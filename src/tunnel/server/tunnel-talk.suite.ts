import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { duplexOf, type Link } from '../link/index.ts'
import type { TunnelLab } from './tunnel-lab.suite.ts'

const never = new AbortController().signal

/** All that a stream says until its end. */
export async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}

/** What a target answers to a text, through a link of a front end. */
export async function echoOverGrpc(link: Link, address: string, text: string): Promise<string> {
  const stream = duplexOf(await link.dial(address, { signal: never, deadlineMs: 5_000 }))
  stream.write(text)
  const [chunk] = (await once(stream, 'data')) as [Buffer]
  // Konnectivity's protocol ends both directions at once, so only after the answer.
  stream.end()
  await once(stream.resume(), 'close')
  return chunk.toString()
}

/** What a socket says next. */
export async function nextText(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString('latin1')
}

/** Host and port of an address. */
export function placeOf(address: string): { readonly host: string; readonly port: number } {
  const [host = '', port] = address.split(':')
  return { host, port: Number(port) }
}

/** A connection through the tunnel on which a byte was sent, and the end. */
export async function sent(lab: TunnelLab, address: string): Promise<Duplex> {
  const stream = await lab.server.dialer.dial(placeOf(address), never)
  stream.end('x')
  return stream
}
