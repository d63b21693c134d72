import { describe, expect, test } from 'vitest'
import { SeenCookies } from './seen-cookies.ts'

describe('[SEC-R1802] cookies that a setter gets back', () => {
  test.each([
    ['sid=1; HttpOnly; Path=/', 'sid=1', 'sid=1'],
    [' sid = 1 ;Path=/', 'sid=1', 'sid=1'],
    ['sid="a b"', 'sid="a b"', 'sid="a b"'],
    ['sid=a=b', 'sid=a=b', 'sid=a=b'],
    ['sid=', 'sid=', 'sid='],
    ['alone', 'alone', 'alone'],
    ['=alone', 'alone', 'alone'],
    ['sid=1', 'theme=dark; sid=1;sid=2 ; x', 'sid=1'],
    ['sid=1', 'SID=1', ''],
    ['sid=1', 'sid=1x', ''],
    ['sid=1', ' sid=1 ; sid=1', 'sid=1; sid=1'],
    ['sid=1', '', ''],
  ])('after Set-Cookie: %s, of Cookie: %s it gets %j', (set, sent, forwarded) => {
    const cookies = new SeenCookies()
    cookies.add('a', set)
    expect(cookies.filter('a', sent)).toBe(forwarded)
    expect(cookies.filter('b', sent)).toBe('')
  })

  test('are also those that it has replaced since, as responses may overtake each other', () => {
    const cookies = new SeenCookies()
    for (const value of [1, 2, 3]) cookies.add('a', `sid=${value}`)
    expect(cookies.filter('a', 'sid=2')).toBe('sid=2')
  })

  test('are bounded in number: what is in use stays, what is old goes', () => {
    const cookies = new SeenCookies()
    cookies.add('a', 'session=1')
    cookies.add('a', 'old=1')
    for (let count = 0; count < 499; count++) {
      cookies.add('a', `rolling=${count}`)
      expect(cookies.filter('a', 'session=1')).toBe('session=1')
    }
    expect(cookies.filter('a', 'old=1; rolling=498; session=1')).toBe('rolling=498; session=1')
    for (let count = 0; count < 500; count++) cookies.add(`other ${count}`, 'x=1')
    expect(cookies.filter('a', 'session=1')).toBe('')
  })
})
