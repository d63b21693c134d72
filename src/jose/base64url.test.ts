import { expect, test } from 'vitest'
import { decodeBase64url } from './compact-jws.ts'

test.each(['', 'AA', 'AAA', 'AAAA', '-_-_', 'eyJ9'])('%j is canonical', (text) => {
  expect(decodeBase64url(text)?.toString('base64url')).toBe(text)
})

test.each([
  ['padding', 'AA=='],
  ['the standard alphabet', 'ab+/'],
  ['a stray character', 'AA!A'],
  ['a space', 'AA A'],
  ['a line end', 'AAAA\n'],
  ['one left over', 'AAAAA'],
  ['bits that count for nothing', 'AB'],
  ['a letter outside ASCII', 'AAÄA'],
])('%s is refused', (_name, text) => {
  expect(decodeBase64url(text)).toBeUndefined()
})
