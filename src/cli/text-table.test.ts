import { expect, test } from 'vitest'
import { textTable } from './text-table.ts'

test('columns are as wide as their widest cell', () => {
  expect(
    textTable(
      ['ID', 'NAME'],
      [
        ['abcdef', 'x'],
        ['b', ''],
      ],
    ),
  ).toBe('ID       NAME\nabcdef   x\nb\n')
})

test('what somebody else wrote stays on its line and commands no terminal', () => {
  expect(textTable(['TEXT'], [['\u001B[2Ja\nb']])).toBe('TEXT\nU+001B[2JaU+000Ab\n')
})
