import { AnswerInvalid, ConnectionFailed } from './client-errors.ts'

const newline = 0x0a

/** The lines of a byte stream; throws when one is too long or the stream ends within one. */
export async function* readLines(
  source: AsyncIterable<unknown>,
  maxBytes: number,
): AsyncGenerator<Buffer> {
  let parts: Buffer[] = []
  let size = 0
  const add = (part: Buffer): void => {
    parts.push(part)
    size += part.length
    if (size > maxBytes) throw new AnswerInvalid(`an event is larger than ${maxBytes} bytes`)
  }
  for await (const chunk of source) {
    const bytes: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk))
    let start = 0
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
      add(bytes.subarray(start, end))
      yield Buffer.concat(parts, size)
      start = end + 1
      parts = []
      size = 0
    }
    add(bytes.subarray(start))
  }
  if (size > 0) throw new ConnectionFailed('a watch ended in the middle of an event')
}
