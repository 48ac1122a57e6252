"""Tags of a label: component, kind, one layer or all, in the languages in which people count.

>>> sorted(tags_of("Attention output projection, without bias"))
['attention', 'o']
>>> sorted(tags_of("每层注意力"))
['attention', 'block', 'one']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

# Each tag, with the label words that imply it.
_WORDS = tuple(
    (tag, re.compile(pattern, re.IGNORECASE))
    for tag, pattern in (
        ("token", r"\b(tok(en)?s?|vocab\w*|wte|emb(ed\w*)?|tok_emb\w*|embed_tokens|word embed\w*|input embed\w*|V)\b"),
        ("position", r"\b(po[sz]i\w*|pos|wpe|pos_\w*)\b"),
        ("segment", r"\b(segment\w*|token.?types?|type embed\w*)\b"),
        ("pooler", r"\b(pooler|pooling)\b"),
        ("head", r"\b(lm.?head|(?<!multi)(?<!multi.)head\b(?!s)|unembed\w*|(?:to|into|onto|over) (?:the |its )?vocab\w*|output (layer|embed\w*|matrix|vocab\w*)|out_head|classifier|logits?)"),
        ("attention", r"\b(\w*att(n|ention)\w*|mha|gqa|mqa|multi.?head(ed)?)\b|_attn"),
        ("qkv", r"qkv|c_attn|\bin_proj|\bq ?[,/&+] ?k|quer(y|ies)[,/ ]+(and )?keys?"),
        ("q", r"\b(w_?q|q_proj|quer(y|ies)|q)\b"),
        ("k", r"\b(w_?k|k_proj|keys?|k)\b"),
        ("v", r"\b(w_?v|v_proj|values?|v)\b(?! embed)"),
        ("o", r"\b(w_?o|w_?out|o_proj|c_proj|out_proj|out(put)? (proj\w*|matrix|weights?)|attn.c_proj|attproj\w*)\b|\bv ?[,/&+] ?o(?:ut(?:put)?)?\b|(?<=qkv) ?[,/&+] ?(?:out|proj)\b|^\W*(?:\S+\W+)?output\W*$"),
        ("mlp", r"\b(mlp|ffn{0,2}|feed.?forward|ff|position.?wise|fc|fully|(?:swi|ge|re)?glu|fc(?:w|b|proj\w*))\b|c_fc|_fc\b"),
        ("gate", r"\b(w?gate\w*|w_?[1g])\b"),
        ("up", r"\b(w?up\w*|w_?u|fc[wb]?|expan\w+|c_fc|fc_?1|first|hidden layer|w_?3|h_to_4h)\b"),
        ("down", r"\b(w?down\w*|w_?d|fc_?proj\w*|contract\w*|mlp.c_proj|fc_?2|second|w_?2|4h_to_h)\b"),
        ("experts", r"\b(experts?|moe)\b"),
        ("single", r"\b(per|each|one|single|an) (\w+ )?expert\b"),
        ("shared", r"\bshared\b"),
        ("router", r"\b(router|routing|gating)\b"),
        ("norm", r"(norm|\bln(_?\w)?\b|\bln_|\bln[12f][wb]\b)"),
        ("final", r"\b(final|last|ln_f|top)\b|^\W*output (?:\w+ ?)?norm"),
        ("bias", r"\b(bias\w*|(?:qkv|fc|attproj|fcproj)b|b_?[qkvo12])\b"),
        ("scale", r"\b(scales?|gains?|gamma|γ|ln[12f]w)\b"),
        ("shift", r"\b(shifts?|beta|β|ln[12f]b)\b"),
        ("block", r"\b(blocks?|layers?)\b(?!.?norm)"),
        ("one", r"\b(per|each|every|one|single|a) (\w+ )?(layer|block)\b|^\W*1 (?:\w+ )?(?:layer|block)\b|\bper.?(layer|block)|(?<=\w) ?/ ?(layer|block)\b"),
        ("all", r"\b(all|total|\d+) (\w+ )?(layers|blocks)\b"),
    )
)  # fmt: skip

# The same in Chinese, Japanese, Korean, German, French, Spanish and Russian.
_ABROAD = tuple(
    (tag, re.compile(pattern, re.IGNORECASE))
    for tag, pattern in (
        ("token", r"词嵌入|词元|词表|(?<![反解])嵌入|詞嵌入|埋め込み|埋込|単語|(?<!언)임베딩|\w*einbettung|plongement|incrustaci|エンベディング|эмбеддинг|вложени|\bosadz|\bzanurz|\bgömme|\bnhúng"),
        ("position", r"位置|위치|\bposici|позици|vị trí|\bkonum|\bposisi"),
        ("head", r"[反解]嵌入|언임베딩|アンエンベ|输出层|輸出層|出力層|출력층|출력 헤드|ausgabeschicht|couche de sortie|capa de salida|camada de saída|strato di uscita|çıkış (?:başlığı|katmanı)|\bđầu ra\b|выходн\w*(?! проекц)"
            r"|(?:输出|輸出|分类|分類|语言(?:模型|建模))[头頭]|(?:出力|分類|言語モデル)ヘッド|(?:분류|언어 ?모델) ?헤드|(?:ausgabe|klassifikations|\blm-)kopf"
            r"|tête (?:lm|de (?:sortie|classification))|cabe[zç]a (?:lm|de (?:salida|saída|cla\w+))|testa (?:lm|di (?:uscita|classificazione))"),
        ("attention", r"注意力|多[头頭]|マルチヘッド|멀티.?헤드|注意機構|アテンション|어텐션|주의|aufmerksamkeit|\baten[cç]|внимани|\battenzione|\bdikkat|chú ý|\bperhatian"),
        ("q", r"查询|查詢|クエリ|쿼리|\bconsultas?\b|\brequêtes?\b|\bзапрос"),
        ("k", r"键(?!值)|鍵|キー(?:行列|射影|の重み)|키 (?:행렬|가중치|프로젝션)"),
        ("v", r"值(?:矩阵|投影|向量|权重)|バリュー|밸류|값 (?:행렬|가중치)"),
        ("o", r"输出(?:投影|矩阵|变换)|輸出(?:投影|矩陣)|出力(?:射影|投影|行列)|출력 ?(?:투영|프로젝션|행렬)|ausgabeprojektion|projection de sortie|proyección de salida|projeção de saída"
            r"|proiezione di uscita|выходн\w+ проекц|çıkış projeksiyon|\bo[- ]?(?:projektion|projeksiyon|投影|射影|투영|프로젝션)|(?:projection|proyección|projeção|proiezione|проекция|chiếu) o\b"),
        ("gate", r"门控(?!网络)|門控|ゲート|게이트"),
        ("up", r"上(?:投影|射影)|アップ(?:射影|プロジェクション)|업 ?(?:투영|프로젝션)"),
        ("down", r"下(?:投影|射影)|ダウン(?:射影|プロジェクション)|다운 ?(?:투영|프로젝션)"),
        ("mlp", r"前馈|前向网络|前饋|フィードフォワード|全結合|全连接|全連接|피드포워드|vorwärts|прямого распространени|полносвязн|ileri besleme|truyền thẳng"),
        ("experts", r"专家|專家|エキスパート|전문가|\bexpert[eo]|эксперт|\bespecialist|\bespert|\buzman|chuyên gia"),
        ("segment", r"段嵌入|片段|类型嵌入|類型嵌入|タイプ埋め込み|セグメント|세그먼트|句子"),
        ("pooler", r"池化|プーラー|풀러"),
        ("single", r"(每个|单个|一个|每個|單個)(专家|專家)|エキスパート(1|一)|전문가 (하나|1)|(?:je|pro|ein) expert"),
        ("router", r"路由|门控网络|ルーター|라우터|маршрутизат|роутер|\brouteur|enrutador|roteador|yönlendirici|định tuyến"),
        ("norm", r"归一化|正規化|정규화|normierung|normalis|нормализ|\bnormali[zs]+a|\bnorm[ay] warstw|normalleştirme|chuẩn hóa|\bnorma\b"),
        ("final", r"\bcuối\b|abschließend|最终|最終|最后|最後|최종|마지막|\bletzte|\bderni|\búltim|последн|финальн|\bkońcow|\bostatni|\bson\b|\bfinale\b"),
        ("bias", r"偏置|バイアス|편향|\bbiais|\bsesgo|смещени"),
        ("block", r"层|層|레이어|층|블록|ブロック|\bschicht|\bcouche|\bblocs?\b|\bcapas?\b|\bbloques?\b|\bblocos?\b|\bstrat[oi]\b|\bkatman|\bblok|\bwarstw|\blaag\b|\blagen\b|\bcamadas?\b|\b(?:tầng|lớp|khối)\b|\blapisan|сло[йеёяию]|\bблок"),
        ("one", r"\b(?:bloc complet|couche complète|bloque completo|capa completa|bloco completo|camada completa|blocco completo|ganzer block|весь блок)\b|(?:blok|katman) başına|(?:her|bir) (?:blok|katman)|\bein(?:zelne\w*)? block\b|\b(?:une seule couche|una sola capa|uma única camada|одного сло[ея]|одного блока)\b|\b(?:katman|blok) toplam|schichtsumme|сумма (?:слоя|блока)|\btotale? d(?:e la|ella|a|u|el|o) (?:couche|capa|camada|bloc|bloque|bloco)\b|(?:mỗi|một) (?:tầng|lớp|khối)|(?:per|ogni|uno?) (?:strato|blocco)|(?:na|każd\w+|jed\w+) (?:blok|warstw)|(?:per|elke|één) (?:laag|blok)|(?:per|setiap) lapisan|每层|每層|单层|(?<!第)一层|每个|各层|(?<!第)一層|(?<!第)1層|(?:層|ブロック|レイヤー)(?:あたり|当たり|ごと|毎)|(?:레이어|층|블록) ?당|(?:레이어|블록|층) 하나|한 (?:\S+ )?(?:층|레이어|블록)|(?:一个|单个?|一個|單個|(?:1|一)つの|各)\s?[^\s,，。:：]{0,14}(?:[层層块塊]|ブロック|レイヤー)|(?:一个?|单个?|一個|單個?)\s?(?:\w+ )?(?:block|layer)"
            r"|(?:je|pro|einer?|einem|jeder|jede) (?:[\w-]+[- ])?(?:schicht|block)|(?:par|une?|chaque) (?:couche|bloc)|(?:por|una?|cada) (?:capa|bloque)|(?:por|uma?|cada) (?:camada|bloco)|(?:на|один|одном|каждый|каждом) (?:сло|блок)"
            r"|(?:je|pro|par|chaque|por|cada|на|ogni|mỗi|her|setiap|na|każdy|elke|每个?|各) ?(?:layer|block)\b"),
        ("all", r"全部层|所有层|总层|全層|全レイヤー|전체 레이어|모든 레이어|alle schichten|toutes les couches|todas las capas|все сло"),
    )
)  # fmt: skip
_WITHOUT = re.compile(
    r"\b(?:without|no|ignor\w+|exclud\w+|w/o|omit\w+)\s+(?:\w+\s+)?(bias|shift|scale|norm|position)\w*", re.I
)
_SUMMED = r"(?:sub-?total\w*|total\w*|gesamt|insgesamt|zusammen|toplam\w*|合计|小计|合計|小計|总计|総計|합계|소계|총합|总参数量?|總參數量?|итого|всего|razem|łącznie|tổng(?: cộng)?)"
# Words for layers behind their number, in the supported languages.
LAYERS = (
    r"(?:layers|blocks|schichten|blöcke|couches|blocs|capas|bloques|camadas|blocos|strati|blocchi|katman|blok|warstw\w*"
    r"|blok[óo]w|tầng|khối|lớp|lapisan|сло[её]в|блок\w+|层|層|レイヤー|ブロック|층|레이어|블록)"
)
# A label that counts layers and says nothing else; its one group that matches is the count.
_OF_LAYERS = re.compile(
    # "12 layers", "All 12 transformer layers"
    rf"\W*(?:(?:{_SUMMED}|i) (?:for |of |in |across |su |di |para )?)?(?:all |i )?(?:the )?\(?(\d{{1,4}})\s?(?:[*×x]\s?)?(?:个\s?|개\s?)?(?:\w+ )?{LAYERS}\s?{_SUMMED}?\W*"
    # "Layers total (12)"
    r"|\W*(?:all )?(?:\w+ )?(?:layers|blocks)(?: in)?(?: total)? \((\d{1,4})\W*"
    # "12 × Encoder layer", "12 个 Block"
    r"|\W*(\d{1,4})\s?(?:[*×x]|[个個]|개의?|つの)\s?(?:\w+ ){0,2}(?:layer|block|schicht|couche|bloc|capa|bloque|camada|bloco)\W*",
    re.I,
)
# Tags for one matrix of attention.
PROJECTIONS = frozenset({"q", "k", "v", "o"})
# The same of any module, in the order in which people name them.
MATRICES = ("q", "k", "v", "o", "gate", "up", "down")
# Tags for the parts of a layer's modules: a sum of these alone counts the module.
OF_ATTENTION = PROJECTIONS | {"qkv", "attention"}
OF_MLP = frozenset({"mlp", "gate", "up", "down"})
OF_EXPERTS = frozenset({"experts", "router"})
# Tags for the kind of tensor and the layers, not for the component.
VECTORS = frozenset({"bias", "scale", "shift"})
KINDS = VECTORS | frozenset({"one", "all", "block", "module", "single"})
# Tags for the embeddings, and for every part outside the layers.
EMBEDDINGS = frozenset({"token", "position", "segment"})
OUTSIDE = EMBEDDINGS | {"final", "pooler", "head"}

# Words for more than one norm.
SEVERAL = re.compile(
    r"\b(?:two|both|(?<!norm )(?<!ln )2(?!\W*$|\s*[*×·]\s*(?:\d|[A-Za-z]\b|[A-Za-z]+_))|zwei|beide|deux|dos|два|оба)\b|norms\b|normali[sz]ations\b|两|兩|2つ|二つ|두",
    re.IGNORECASE,
)
# Words for one of the norms of a layer.
ONE_NORM = re.compile(
    r"(?:norm\w*|\bln)[ _-]?#?[12]\b|\b(?:first|second|one|each) (?:layer ?|rms ?)?norm", re.IGNORECASE
)

# "(768 → 3072 → 768 + bias)" includes the biases, but is not only about them.
_WITH = re.compile(
    r"(?:\+|&|\b(?:with|and|incl\w*|plus|mit|avec|con|y|e|et|und)\b|含|和|及|と)\s*(?:the |its )?bias\w*", re.I
)
_SETTING = re.compile(r"\b[A-Za-z]\w{0,20}\s?=\s?\d[\d.,]*")  # "GPT-2 (V = 50257, d = 768)" names no part
# Both vectors of a norm: "LayerNorm (scale + bias)"
_VECTORS = re.compile(
    r"\b(?:scales?|gains?|gamma|γ)\s?(?:\+|&|/|,|and|和|及|と|und|et|y|e|и)\s?(?:bias(?:es)?|shifts?|beta|β)\b", re.I
)
TIED = re.compile(r"(?<![^\W_])(?:un)?tied|tying|share[sd]?(?![^\W_])|共享|共有|绑定|공유", re.IGNORECASE)
# Of a total or a row that leaves something out.
PARTIAL = re.compile(r"\b(?:non|excl\w*|without|w/o|only|not|ohne|sans|sin|sem|без)\b|[不除]", re.IGNORECASE)
_TIED = re.compile(r"\b(?:tied|shared) (?:with|to)\b[^),;]*", re.IGNORECASE)  # names the other tensor
# Boundaries of Latin words without a blank: 每个GPT2MLP, TransformerBlock.
_SEAM = re.compile(
    r"(?<=[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])(?=[A-Za-z0-9])"
    r"|(?<=[A-Za-z0-9])(?=[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
    r"|(?<=[a-z0-9])(?=[A-Z][A-Za-z])|(?<=[A-Z])(?=[A-Z][a-z])"
)
_TOKENS = re.compile(r"\b(tok(en)?s?|word|vocab\w*|wte|V)\b(?!.?type)|词|詞|単語|토큰", re.IGNORECASE)

# "Layer", "Block total", "full transformer block"
_ONE_LAYER = re.compile(
    r"\W*(?:(?:full|complete|entire|whole|total) (?:(?:trans|de|en)\w+ )?(?:layer|block)"
    r"|(?:(?:trans|de|en)\w+ )?(?:layer|block)(?: (?:sub)?total)?)\W*",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"\b(?:projection|proyección|projeção|proiezione|проекция|chiếu) v\b|\bv[- ](?:projektion|projeksiyon)|\bw[_ ]?v\b|\bv[_ ]?(?:proj|matri|weight|linear)|\bvalues?\b|\bv ?(?:投影|矩阵|矩陣|权重|線形|射影|行列|투영|행렬|프로젝션)",
    re.IGNORECASE,
)
_VOCABULARY = re.compile(r"\b(?:tok|vocab|wte|word|emb)|词|詞|単語|토큰", re.IGNORECASE)


_OUTPUT = re.compile(r"\boutput\b", re.IGNORECASE)
_PROJECTION = re.compile(r"(?<![^\W_])(gate|up|down)_proj")


@lru_cache(maxsize=4096)
def tags_of(label: str) -> frozenset[str]:
    """Return what a label is about, as tags of `quantities`.

    Args:
        label: text in any of the supported languages.
    """
    one = {"one", "block"} if _ONE_LAYER.fullmatch(label) else frozenset()
    label = _SETTING.sub(" ", label) if "=" in label else label
    label = _TIED.sub(" ", _WITH.sub(" ", _VECTORS.sub(" ", _WITHOUT.sub(" ", label.replace("^", "_")))))  # W^O is W_O
    label = f"{label} {_SEAM.sub(' ', label.replace('_', ' '))}"
    found = {tag for tag, pattern in (*_WORDS, *_ABROAD) if pattern.search(label)} | one
    if "_proj" in label and (projection := _PROJECTION.findall(label)):
        found = found - {"gate", "up", "down"} | {*projection}  # "fc3 (down_proj)"
    if {"q", "k", "v"} <= found or "qkv" in found:
        found = found - {"q", "k", "v"} | {"qkv"}
    if ("qkv" in found or _VALUE.search(label)) and not _VOCABULARY.search(label):
        found.discard("token")  # the V of "Q, K, V" and "W_v" is not the vocabulary
    if "norm" in found and len(found & {"scale", "shift", "bias"}) > 1:
        found -= {"scale", "shift", "bias"}  # both vectors of a norm are the norm
    if {"mlp", "o"} <= found and "attention" not in found:
        found = found - {"o"} | {"down"}  # c_proj of an MLP
    if {"qkv", "o"} <= found:
        found = found - {"qkv", "o"} | {"attention"}
    if {"up", "down"} <= found:
        found = found - {"gate", "up", "down"} | {"mlp"}
    if found & {"position", "segment", "pooler"} and not _TOKENS.search(label):
        found.discard("token")
    return frozenset(found)


def matrices_in(label: str) -> frozenset[str]:
    """Return each matrix that a label names: {"q", "k"} of "Q and K are each", three of "QKV"."""
    label = label.replace("^", "_")
    label = f"{label} {_SEAM.sub(' ', label.replace('_', ' '))}"
    named = (*MATRICES, "qkv")
    found = {tag for tag, pattern in (*_WORDS, *_ABROAD) if tag in named and pattern.search(label)}
    if "down" in tags_of(label):
        found.discard("o")  # c_proj of an MLP
    if found & {"q", "k", "v"} and _OUTPUT.search(label):
        found.add("o")  # "query and output each have"
    return frozenset(found | {"q", "k", "v"} if "qkv" in found else found) - {"qkv"}


def nearest_tags(labels: Iterable[str]) -> frozenset[str]:
    """Return the tags of the first label that has any; the nearest label comes first."""
    return next((tags for label in labels if (tags := tags_of(label))), frozenset())


def names_layer(label: str) -> bool:
    """Return whether a label names one layer, and no part of it: "Per block"."""
    return {"one", "block"} <= tags_of(label) <= KINDS


def names_part(items: Sequence[str]) -> bool:
    """Return whether the nearest item that a line stands under is a part of a model."""
    return bool(items) and bool(tags_of(items[0]) - KINDS)


def layers_of(label: str) -> int | None:
    """Return the layer count if a label is nothing else: 12 for "12 layers", else None."""
    match = _OF_LAYERS.fullmatch(label)
    return int(match[match.lastindex or 0]) if match else None
