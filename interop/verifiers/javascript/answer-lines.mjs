import process from 'node:process'
import { createInterface } from 'node:readline'

/** Reads a token per line and says of each, in a line of JSON, what `verify` makes of it: claims, or a throw. */
export async function answerLines(verify) {
  process.stdout.write('ready\n')
  for await (const token of createInterface({ input: process.stdin })) {
    const answer = await verify(token).then(
      ({ sub }) => ({ ok: true, sub }),
      (error) => ({ ok: false, why: [error, error.cause].map(wordsOf).join(' ').trim() }),
    )
    process.stdout.write(`${JSON.stringify(answer)}\n`)
  }
}

const wordsOf = (error) =>
  error instanceof Error ? `${error.code ?? error.name}: ${error.message}` : ''
