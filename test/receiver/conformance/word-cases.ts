import type { Store } from '#src/receiver/store/store.ts';
import { equal, listed, post, SCOPE, type StoreCase, second } from './support.ts';

/** Words are cut after this many characters. */
const LONG = 'l'.repeat(64);

/** The inputs of the runs 1 to 22. */
const TEXTS: readonly string[] = [
  'Crème brûlée für Zoë',
  'cafe\u0301 CREME de\u0301ja\u0300 vu',
  'Возврат товара: Ёлка и ежи',
  'ВОЗВРАТ денег',
  'Επιστροφή χρημάτων στην ΟΔΟ Ερμού',
  'استرداد الطلب رقم ١٢٣',
  'اِسْتِرْدَاد',
  'धनवापसी का अनुरोध',
  '订单退款失败',
  '退 回 单 号 , 款 式 , 订 阅',
  '请用GPT格式化v2文件',
  '格式，化学',
  '東京タワーのフォーマット',
  'ﾌｫｰﾏｯﾄ 変換 𠮷野家',
  'サーバーA が落ちた',
  'ขอคืนเงินค่าสินค้า',
  'เงินคืน',
  '환불을 요청합니다 주문번호 42',
  '🦜 refund 100% ＲＥＦＵＮＤ２ 3.14',
  'snake_case İstanbul\n東\n区',
  'ສະບາຍດີ សួស្តី မင်္ဂလာပါ',
  `before\0behind don’t ﬁne near not ${LONG}y`,
];

const ALL = TEXTS.map((_, at) => at + 1);

const SEARCHES: Readonly<Record<string, readonly number[]>> = {
  ...{ creme: [1, 2], CRÈME: [1, 2], brulee: [1], 'BRU\u0302': [1], rulee: [], 'fur zoe': [1], cafe: [2], café: [2] },
  ...{ '"DÉJÀ vu"': [2], '"vu deja"': [], istanbul: [20], snake_c: [20], case: [], vue: [] },
  ...{ возврат: [3, 4], ВОЗВ: [3, 4], елка: [3], Ёж: [3], 'денег возврат': [4], '"денег возврат"': [], врат: [] },
  ...{ επιστροφη: [5], ΟΔΌ: [5], χρημα: [5], ΕΡΜΟΎ: [5], στροφη: [] },
  ...{ استرداد: [6, 7], اِسترداد: [6, 7], الطلب: [6], '"رقم الطلب"': [], '١٢': [6], '12': [] },
  ...{ धनवापसी: [8], धन: [8], '"का अनुरोध"': [8], वापसी: [] },
  ...{ 订单退款: [9], 退款: [9], 款退: [], '"退款"': [9], '退 款': [9, 10], '订 单': [9, 10], 号款: [10], 款: [9, 10] },
  ...{ 格: [11, 12], 式: [10, 11, 12], 格式化: [11, 12], '"格式化"': [11, 12], 化学: [12], 格化: [], 东区: [] },
  ...{ GPT格式化v2: [11], gpt: [11], ＧＰＴ: [11], v2: [11], '"化 v2"': [11], 格式化gpt: [11], '"格式化gpt"': [] },
  ...{ フォーマット: [13, 14], ﾌｫｰﾏｯﾄ: [13, 14], フォ: [13, 14], ﾄｯﾏ: [], 東京タワー: [13], 京東: [] },
  ...{ 東: [13, 20], 東区: [20], 𠮷野: [14] },
  ...{ サーバー: [15], サーバーa: [15], a: [15], が落: [15], '\u304b\u3099落': [15], ー: [13, 14, 15], ーー: [] },
  ...{ คืนเงิน: [16], เงินคืน: [17], เงิน: [16, 17], สินค้า: [16], ค: [16, 17] },
  ...{ 환불: [18], '\u1112\u116a\u11ab\u1107\u116e\u11af': [18], 불을: [], '"요청합니다 주문번호"': [18], 주문: [18] },
  ...{ '42': [18], '3.14': [19], '100%': [19], refund: [19], refund2: [19], ＲＥＦ: [19] },
  ...{ '🦜': ALL, '🦜 refund': [19] },
  ...{ ບາຍ: [21], ຍບາ: [], សស: [21], လာ: [21] },
  ...{ behind: [22], before: [22], "don't": [22], don: [22], fine: [22], [LONG]: [22], [`${LONG}z`]: [22] },
  ...{ 'near not*': [22], '"near not"': [22], '"not near"': [] },
};

export async function applyTexts(store: Store): Promise<void> {
  const runs = TEXTS.map((text, at) => post(at + 1, { name: 'x', inputs: { text } }));
  await store.apply(SCOPE, runs);
}

export async function expectWords(store: Store, words: readonly string[] = Object.keys(SEARCHES)): Promise<void> {
  for (const word of words) {
    // With a start time, ClickHouse searches one range of times instead of three.
    const found = await listed(store, { filter: `${word} since:${second(0)}`, order: 'ascending' });
    equal(found, SEARCHES[word], word);
  }
}

export const wordCases: readonly StoreCase[] = [
  {
    title: 'Words of every script are found in every spelling, and characters without spaces between them as a phrase',
    run: async (store) => {
      await applyTexts(store);
      await expectWords(store);
    },
  },
];
