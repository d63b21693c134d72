const form = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/

/** Reads an RFC 3339 time as Go does; milliseconds since 1970, or undefined for anything else. */
export function parseRfc3339(text: string): number | undefined {
  const found = form.exec(text)
  if (!found) return undefined
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map(Number)
  const [, , , , , , , fraction = '', sign, offsetHour = '0', offsetMinute = '0'] = found
  const date = new Date(0)
  date.setUTCFullYear(year ?? 0, (month ?? 0) - 1, day)
  date.setUTCHours(hour ?? 0, minute, second, Number(fraction.padEnd(3, '0').slice(0, 3)))
  // Dates that do not exist are moved to ones that do, so they do not come out as they went in.
  if (date.toISOString().slice(0, 19) !== text.slice(0, 19)) return undefined
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined
  const offsetMs = (Number(offsetHour) * 60 + Number(offsetMinute)) * 60_000
  return date.getTime() - (sign === '-' ? -offsetMs : offsetMs)
}
