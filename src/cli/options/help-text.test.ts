import { describe, expect, test } from 'vitest'
import { defineOptions } from '../../core/index.ts'
import { helpText, markdownReference } from './index.ts'

const shape = {
  command: 'sallyport user create',
  summary: "Makes a person's kubeconfig.",
  arguments: [{ name: 'NAME', describe: 'who it is for', required: true }],
  options: defineOptions({
    group: {
      type: 'string',
      repeatable: true,
      short: 'g',
      placeholder: 'GROUP',
      group: 'Person',
      describe: 'a group that the person belongs to, which may be any group that bindings name',
    },
    'valid-for': { type: 'duration', default: 5_400_000, group: 'Person', describe: 'lifetime' },
    'a-name-so-long-that-it-needs-its-own-line': {
      type: 'choice',
      choices: ['a', 'b'],
      default: 'a',
      group: 'Person',
      describe: 'odd',
    },
    password: {
      type: 'string',
      secret: true,
      default: 'hunter2',
      group: 'Other',
      describe: 'hidden',
    },
    size: { type: 'bytes', default: 3_145_728, group: 'Other', describe: 'how much' },
  }),
  examples: [{ line: 'sallyport user create ann -g dev', does: 'a developer' }],
}

describe('help', () => {
  test('shows usage, arguments, options by group and examples', () => {
    expect(helpText(shape, 72)).toBe(`Usage: sallyport user create NAME [options]

Makes a person's kubeconfig.

Arguments
  NAME  who it is for

Person
  -g, --group GROUP     a group that the person belongs to, which may be
                        any group that bindings name (may be repeated)
  --valid-for DURATION  lifetime (default: 1h30m)
  --a-name-so-long-that-it-needs-its-own-line a|b
                        odd (default: a)

Other
  --password TEXT  hidden
  --size SIZE      how much (default: 3Mi)

Examples
  # a developer
  sallyport user create ann -g dev
`)
  })

  test.each([60, 80, 120])('keeps to a width of %i columns', (width) => {
    const lines = helpText(shape, width).split('\n')
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width)
  })
})

describe('the reference', () => {
  const page = markdownReference(shape)

  test('has a row per option with its variable and default [GND-R8]', () => {
    expect(page).toContain('## sallyport user create')
    expect(page).toContain('| `--valid-for DURATION` | `SALLYPORT_VALID_FOR` | 1h30m | lifetime |')
    expect(page).toContain('`--a-name-so-long-that-it-needs-its-own-line a\\|b`')
    expect(page).toContain('may be repeated')
  })

  test('does not show what is secret', () => {
    expect(page).not.toContain('hunter2')
  })
})

test('words for another program come last, after two dashes', () => {
  const [usage] = helpText(
    {
      ...shape,
      arguments: [
        { name: '-- COMMAND', describe: 'what to run', required: true, repeatable: true },
      ],
    },
    72,
  ).split('\n')
  expect(usage).toBe('Usage: sallyport user create [options] -- COMMAND...')
})
