import type { Duplex } from 'node:stream'

/** A header as bytes in Latin-1. */
export type Field = readonly [name: string, value: string]

/** What became of a request. */
export type Fate = 'ok' | 'answered' | 'reset' | 'lost'

const headers = 1
const rstStream = 3
const settings = 4
const endOfStreamAndHeaders = 5

/** Header fields that a client may put on the wire although RFC 9113 §8.2.1 forbids them. */
export const malformedFieldsOf = (name: string, value: string): Field[] => [
  ...[' ', '\t', '\0', '\u0001', '\u001f', '\u007f', '\r', '\n', '\r\n'].flatMap((bad): Field[] => [
    [name, `${value}${bad}`],
    [name, `${bad}${value}`],
    [`${name}${bad}`, value],
  ]),
  [name, ' '],
  [`${name}:`, value],
  [`${name}\u00e9`, value],
  [name.toUpperCase(), value],
]

function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

function literal([name, value]: Field): Buffer {
  const parts = [name, value].map((text) => Buffer.from(text, 'latin1'))
  return Buffer.concat([
    Buffer.from([0]),
    ...parts.flatMap((part) => [Buffer.from([part.length]), part]),
  ])
}

/**
 * Sends a GET with each list of fields on an HTTP/2 connection, in order, and a last one without any.
 * Resolves with what became of each: `ok` (200), `answered` otherwise, `reset`, or `lost` if the connection ended before.
 */
export async function requestsWith(
  socket: Duplex,
  path: (index: number) => string,
  lists: readonly (readonly Field[])[],
): Promise<Fate[]> {
  const fates = new Map<number, Fate>()
  socket.write(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'))
  socket.write(frame(settings, 0, 0))
  for (const [index, fields] of [...lists, []].entries()) {
    const get: Field[] = [
      [':method', 'GET'],
      [':scheme', 'https'],
      [':path', path(index)],
      [':authority', 'localhost'],
    ]
    const block = Buffer.concat([...get, ...fields].map(literal))
    socket.write(frame(headers, endOfStreamAndHeaders, 2 * index + 1, block))
  }
  let buffered = Buffer.alloc(0)
  for await (const chunk of socket) {
    buffered = Buffer.concat([buffered, chunk as Buffer])
    while (buffered.length >= 9 && buffered.length >= 9 + buffered.readUIntBE(0, 3)) {
      const index = buffered.readUInt32BE(5) >> 1
      // RFC 7541 §6.1 and appendix A: the indexed field `:status: 200`.
      if (buffered[3] === headers) fates.set(index, buffered[9] === 0x88 ? 'ok' : 'answered')
      if (buffered[3] === rstStream && !fates.has(index)) fates.set(index, 'reset')
      buffered = buffered.subarray(9 + buffered.readUIntBE(0, 3))
    }
    if (fates.has(lists.length)) break
  }
  return lists.map((_fields, index) => fates.get(index) ?? 'lost')
}
