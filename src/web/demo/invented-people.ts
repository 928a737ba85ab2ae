const names = [
  'Amara Okafor',
  'Jonas Weber',
  'Léa Fontaine',
  'Mateo Ruiz',
  'Inês Duarte',
  'Priya Raman',
  'Zofia Nowak',
  'Tomás Herrera',
  'Noor Haddad',
  'Emil Lindqvist',
  'Chiara Moretti',
  'Kenji Mori',
  'Ayşe Demir',
  'Oluwaseun Adeyemi',
]
const words = [
  'amber',
  'birch',
  'cedar',
  'delta',
  'ember',
  'fjord',
  'grove',
  'harbor',
  'indigo',
  'juniper',
]

let dealt = Math.floor(Math.random() * names.length)

/** A random person with an unused address. */
export function inventPerson() {
  const display_name = names[dealt++ % names.length] ?? ''
  const address = display_name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z]+/g, '.')
  const digits = Math.random().toString(36).slice(2, 8)
  const password = [oneOf(words), oneOf(words), digits].join('-')
  return { display_name, email: `${address}.${digits}@example.com`, password }
}

const oneOf = (some: readonly string[]) => some[Math.floor(Math.random() * some.length)] ?? ''
