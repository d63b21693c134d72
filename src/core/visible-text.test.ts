import { describe, expect, test } from 'vitest'
import { visibleLine, visibleText } from './quote.ts'

describe('a text of somebody else [CRED-S5]', () => {
  test.each([
    ['an escape sequence', 'a\u001b[31mb', 'aU+001B[31mb'],
    ['the one-character form of it', 'a\u009b31mb', 'aU+009B31mb'],
    ['a title, ended by a bell', '\u001b]0;x\u0007', 'U+001B]0;xU+0007'],
    ['a return to the beginning of the line', 'ok\rbad', 'okU+000Dbad'],
    ['a change of the reading direction', '\u202egpj.exe', 'U+202Egpj.exe'],
    ['half of a character', '\ud800', 'U+D800'],
    ['other scripts and symbols', 'Zoë 東京 €', 'Zoë 東京 €'],
    ['lines and columns', 'a\tb\r\nc\n', 'a\tb\nc\n'],
  ])('has no power over the terminal: %s', (_name, text, shown) => {
    expect(visibleText(text)).toBe(shown)
  })

  test('stays on its line where it must', () => {
    expect(visibleLine('a\nb\tc\u2028d')).toBe('aU+000AbU+0009cU+2028d')
  })
})
