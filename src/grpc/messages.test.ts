import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeMessage, GrpcMessageError, MessageReader } from './messages.ts'

test('any messages, split at any places, arrive as they were sent', () => {
  const messages = fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 20 })
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 10 })
  fc.assert(
    fc.property(messages, sizes, (sent, chunkSizes) => {
      const bytes = Buffer.concat(sent.map((message) => encodeMessage(Buffer.from(message))))
      const received: Buffer[] = []
      const reader = new MessageReader((message) => received.push(message))
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = chunkSizes[turn % chunkSizes.length] ?? 1
        reader.push(bytes.subarray(at, at + size))
        at += size
      }
      expect(received).toEqual(sent.map((message) => Buffer.from(message)))
      expect(reader.isComplete).toBe(true)
    }),
  )
})

test.each([
  ['a compressed message', [1, 0, 0, 0, 0]],
  ['a message above the limit', [0, 0, 0, 0, 101]],
])('%s is refused before its content arrives', (_name, prefix) => {
  const reader = new MessageReader(() => {}, 100)
  expect(() => reader.push(Buffer.from(prefix))).toThrow(GrpcMessageError)
})

test('a message that has begun is known to be incomplete', () => {
  const message = encodeMessage(Buffer.from('ab'))
  for (let length = 1; length < message.length; length++) {
    const reader = new MessageReader(() => {})
    reader.push(message.subarray(0, length))
    expect(reader.isComplete).toBe(false)
  }
})
