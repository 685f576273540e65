export const articles = [
  {
    title: 'Damaged items',
    text: 'An item that arrived damaged is replaced or refunded within 30 days. A photo is not needed below 200 EUR.',
  },
  { title: 'Replacements', text: 'A replacement leaves the warehouse within one working day, at no cost.' },
  { title: 'Cancelled orders', text: 'A cancelled order is refunded at once, to the card that paid for it.' },
  { title: 'Expired cards', text: 'If the card has expired, the refund becomes store credit.' },
  { title: 'Parcels', text: 'A parcel without a scan for 7 working days is traced.' },
  { title: 'Countries', text: 'We ship to the EU, Norway, Switzerland and the UK. Norway: 4 to 6 days, 14.90 EUR.' },
  { title: 'Addresses', text: 'The address of an order can be changed until it has left the warehouse.' },
];
