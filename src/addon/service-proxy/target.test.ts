import { expect, test } from 'vitest'
import { isDialable } from '../../http/address-rules.ts'

test.each([
  ['10.1.2.3', true],
  ['192.168.0.1', true],
  ['172.16.0.1', true],
  ['8.8.8.8', true],
  ['fd00::1', true],
  ['2001:db8::1', true],
  ['127.0.0.1', false],
  ['127.255.0.1', false],
  ['0.0.0.0', false],
  ['0.1.2.3', false],
  ['169.254.169.254', false],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['::', false],
  ['::1', false],
  ['fe80::1', false],
  ['fe80::1%eth0', false],
  ['ff02::1', false],
  ['::ffff:127.0.0.1', false],
  ['::ffff:7f00:1', false],
  ['::ffff:10.0.0.1', false],
  ['64:ff9b::7f00:1', false],
  ['64:ff9b:1::7f00:1', false],
  ['::127.0.0.1', false],
  ['2002:7f00:1::', false],
  ['::1%lo', false],
  ['localhost', false],
  ['010.0.0.1', false],
  ['2130706433', false],
  ['', false],
])('%j may be dialled: %j [ADDON-T52]', (address, expected) => {
  expect(isDialable(address)).toBe(expected)
})
