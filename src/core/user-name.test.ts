import { expect, test } from 'vitest'
import { problemOfUserName } from './auth.ts'

test.each([
  '',
  ' ',
  '\t',
  '\u00a0',
  '\u2003',
  '\ufeff',
  ' bob',
  'bob ',
  'bob\u00a0',
  '\nbob',
  'bob\r\nX-Authenticated-User: root',
  'bob\0',
  'bo\u0007b',
  'bo\u007fb',
  'bo\u0085b',
  'bo\u2028b',
  'bob\ud800',
])('%j is no user name [SEC-R2005]', (name) => {
  expect(problemOfUserName(name)).toEqual(expect.any(String))
})

test.each([
  'bob',
  'Bob Miller',
  'system:admin',
  'jürgen@example.com',
  'https://idp#7',
  '用户',
  '😀',
])('%j is a user name', (name) => {
  expect(problemOfUserName(name)).toBeUndefined()
})
