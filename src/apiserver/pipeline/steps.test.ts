import { describe, expect, test } from 'vitest'
import { defaultRequestLimits } from '../limits.ts'
import { checkRequestSize } from './steps.ts'

describe('a request that is too large is refused [GND-R83]', () => {
  const { maxUrlLength, maxHeaderCount, maxHeaderBytes } = defaultRequestLimits
  test.each([
    ['URL', 414, { url: `/${'a'.repeat(maxUrlLength)}`, rawHeaders: [] }],
    ['headers by count', 431, { url: '/', rawHeaders: Array(2 * maxHeaderCount + 2).fill('a') }],
    ['headers by size', 431, { url: '/', rawHeaders: ['a', 'b'.repeat(maxHeaderBytes)] }],
  ])('%s: %i', (_name, httpCode, request) => {
    expect(() => checkRequestSize(request, defaultRequestLimits)).toThrow(
      expect.objectContaining({ httpCode }),
    )
  })

  test('one at the limit passes', () => {
    const request = {
      url: 'a'.repeat(maxUrlLength),
      rawHeaders: ['b'.repeat(maxHeaderBytes - 1), 'c'],
    }
    expect(() => checkRequestSize(request, defaultRequestLimits)).not.toThrow()
  })
})
